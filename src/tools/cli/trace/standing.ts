import { skewMs } from "../../../parts/once/claim.ts";
import type { Subject } from "./line-index.ts";
import type { TraceLine } from "./log-records.ts";
import type { ClaimFact, TableFacts, TraceAttempt, TraceNode } from "./node.ts";

export type Standing = Pick<
  TraceNode,
  "state" | "until" | "reason" | "queue" | "into" | "confirmed"
>;

interface Now {
  readonly facts: TableFacts;
  readonly nowMs: number;
}

export function dispatchState(subject: Subject, now: Now): Standing {
  const { id, runs, way } = subject;
  const { facts } = now;
  const row = facts.rows.get(id);
  const left = way.findLast(({ msg }) => msg === "event.dispatch_failed");
  const refused = way.findLast(({ msg }) => msg === "event.set_aside");
  if (row?.aside !== undefined) return { state: "set-aside", reason: row.aside, confirmed: true };
  if (row !== undefined) return { state: "in-outbox", reason: left?.reason, confirmed: true };
  if (runs.size > 0) return { state: "dispatched" };
  // A message that cannot be parsed never reaches a consumer, but the queue's lines tell its state.
  const message = runState(subject, summarize([]), undefined, now);
  if (message.state !== "not-seen") return message;
  if (facts.asked.has(id)) return { state: "dispatched", confirmed: true };
  if (refused !== undefined) return { state: "set-aside", reason: refused.reason };
  if (left !== undefined) return { state: "in-outbox", reason: left.reason };
  return { state: "dispatched" };
}

export function jobState(
  subject: Subject,
  summary: RunSummary,
  claim: ClaimFact | undefined,
  now: Now,
): Standing {
  const { id, dueMs, takenBackMs, way } = subject;
  const { facts, nowMs } = now;
  const standing = runState(subject, summary, claim, now);
  if (standing.state !== "not-seen") return standing;
  const row = facts.rows.get(id);
  const confirmed = row && (true as const);
  const aside = row?.aside ?? way.findLast(({ msg }) => msg === "job.set_aside")?.reason;
  if (aside !== undefined) return { state: "set-aside", reason: aside, confirmed };
  const merged = way.findLast(({ msg }) => msg === "job.merged");
  if (merged !== undefined) return { state: "merged", into: merged.into };
  const left = way.findLast(({ msg }) => msg === "job.dispatch_failed");
  const isDueLater = dueMs !== undefined && dueMs > nowMs;
  const isLeft = takenBackMs === undefined && (isDueLater || left !== undefined);
  if (row !== undefined || (!facts.asked.has(id) && isLeft)) {
    const until = dueMs === undefined ? undefined : isoOf(dueMs);
    return { state: "waiting", until, reason: left?.reason, confirmed };
  }
  if (takenBackMs !== undefined) return { state: "taken-back" };
  // No process sends a job early, so one without a row before its due time was canceled.
  return isDueLater ? { state: "taken-back", confirmed: true } : standing;
}

/** Clamps the time to the range of a Date. */
export function isoOf(ms: number): string {
  return new Date(Math.max(-8.64e15, Math.min(8.64e15, ms))).toISOString();
}

export function runState(
  { way }: Subject,
  { last }: RunSummary,
  claim: ClaimFact | undefined,
  { nowMs }: Now,
): Standing {
  if (isDone(last?.state)) return { state: last.state };
  if (claim?.isDone === true) return { state: "done", confirmed: true };
  const held = claim && { until: isoOf(claim.leaseUntilMs), confirmed: true as const };
  if (claim && claim.leaseUntilMs + skewMs >= nowMs) return { state: "running", ...held };
  // Queue lines from before the last failure are about an earlier attempt.
  const since = last?.state === "failed" ? last.endMs : Number.NEGATIVE_INFINITY;
  const letter = way.findLast(({ msg, ms }) => msg === "queue.dead_lettered" && ms >= since);
  const retry = way.findLast(({ msg, ms }) => msg === "queue.retry" && ms >= since);
  if (letter !== undefined && letter.ms >= (retry?.ms ?? letter.ms))
    return { state: "dead-lettered", queue: letter.queue, reason: letter.reason };
  if (retry !== undefined && last?.state !== "unended") {
    const until = isoOf(retry.ms + (retry.afterMs ?? 0));
    return { state: "retrying", until, reason: retry.reason, queue: retry.queue };
  }
  return held ? { state: "interrupted", ...held } : { state: last?.state ?? "not-seen" };
}

type EffectNode = Omit<TraceNode, "at" | "sinceMs"> & { readonly ms: number };

export function effectNodes(lines: readonly TraceLine[], isOver: boolean, facts: TableFacts) {
  const nodes: EffectNode[] = [];
  const add = (node: Omit<EffectNode, "children">) => nodes.push({ ...node, children: [] });
  const claimed = lines.find(({ msg }) => claims.has(msg));
  const state = claimed && claims.get(claimed.msg);
  if (claimed && state) add({ kind: "claim", name: "", state, ms: claimed.ms });
  const uncertain = lines.findLast(({ msg }) => msg === "once.commit_uncertain");
  const committed = lines.find(({ msg }) => msg === "event.published" || msg === "job.scheduled");
  const commit = { kind: "commit", name: "" } as const;
  if (committed !== undefined) add({ ...commit, state: "done", ms: committed.ms });
  else if (uncertain !== undefined)
    add({ ...commit, state: "unknown", ms: uncertain.ms, reason: uncertain.message });
  const steps = new Map<string, TraceLine>();
  for (const line of lines) if (line.stepKey !== undefined) steps.set(line.stepKey, line);
  for (const [id, { step: name = "", msg, ms, reason }] of steps) {
    const standing = facts.steps.get(id);
    const confirmed = standing && (true as const);
    const unknown = isOver || msg === "step.given" ? "done" : "unknown";
    const states = { done: "done", "not done": "failed", running: "running", unknown } as const;
    const state = states[standing ?? "unknown"];
    add({ kind: "step", name, id, state, ms, reason, confirmed });
  }
  return nodes;
}

const claims: ReadonlyMap<string, TraceNode["state"]> = new Map([
  ["once.taken", "taken"],
  ["once.replayed", "replayed"],
  ["once.shared", "replayed"],
  ["once.conflicted", "running"],
] as const);

export type RunSummary = ReturnType<typeof summarize>;

export interface Attempt
  extends Pick<TraceAttempt, "attempt" | "state" | "durationMs" | "status" | "reason"> {
  readonly startMs: number;
  readonly endMs: number;
}

/** `lines` must be in chronological order. */
export function summarize(lines: readonly TraceLine[]) {
  const attempts: Attempt[] = [];
  // `next`, the first line after a failure, starts a new attempt if no line ends the failed one.
  let [open, failure, next] = nothing;
  const failed = (line: TraceLine) => {
    const startMs = (open ?? line).ms;
    attempts.push({ state: "failed", startMs, endMs: line.ms, ...reasonOf(line) });
    [open, failure, next] = [next, undefined, undefined];
  };
  for (const line of lines) {
    const { ms, msg, durationMs, attempt, status, outcome } = line;
    if (isFailure.test(msg)) {
      if (failure !== undefined) failed(failure);
      failure = line;
    } else if (isOver.test(msg)) {
      const times = { startMs: ms - (durationMs ?? 0), endMs: ms, durationMs };
      if (outcome === "handed-back") attempts.push({ attempt, state: "handed-back", ...times });
      else {
        const isFailed = outcome === "failed" || (status ?? 0) >= 400 || line.aborted;
        const state = isFailed ? "failed" : line.replayed ? "replayed" : "done";
        const cut = line.aborted && { reason: "the client disconnected" };
        const why = isFailed && { ...cut, ...reasonOf(failure) };
        attempts.push({ attempt, state, status, ...times, ...why });
        [open, failure, next] = nothing;
      }
    } else if (!isLate.test(msg)) {
      if (failure === undefined) open ??= line;
      else if (ms > failure.ms) next ??= line;
    }
  }
  if (failure !== undefined) failed(failure);
  // Lines after a run's end do not start another attempt.
  const isEnded = attempts.some(({ state, status }) => status !== undefined || isDone(state));
  if (open !== undefined && !isEnded)
    attempts.push({ state: "unended", startMs: open.ms, endMs: open.ms });
  return {
    attempts,
    startMs: least(attempts.map((one) => one.startMs)),
    last: attempts.findLast(isOwn),
  };
}

const nothing: readonly TraceLine[] = [];

/** Spreads no arguments: a call with more than some 100,000 throws. */
export function least(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
}

const isOver = /^(?:request|event|job|delivery|schedule|run)\.completed$/;
const isFailure = /^(?:request|event|job|schedule|run)\.failed$/;
/** Lines about a run in another process, and lines written after a run ends. */
const isLate = /\.(?:conflicted|replayed|failed_late|after_failed|after_late|gave_up)$/;

function isOwn(
  attempt: Attempt,
): attempt is Attempt & { readonly state: Exclude<Attempt["state"], "handed-back"> } {
  return attempt.state !== "handed-back";
}

export function isDone(state: string | undefined): state is "done" | "replayed" {
  return state === "done" || state === "replayed";
}

function reasonOf(failure: TraceLine | undefined) {
  if (failure === undefined) return undefined;
  const { message, error, status = 500 } = failure;
  const text = message ?? failure.reason;
  const reason = text && error && status < 500 ? `${error}: ${text}` : (text ?? error);
  return reason === undefined ? undefined : { reason };
}
