import type { TraceLine } from "./line.ts";
import type { TraceAttempt } from "./node.ts";

export type RunSummary = ReturnType<typeof summarize>;

export interface Attempt
  extends Pick<TraceAttempt, "attempt" | "state" | "durationMs" | "status" | "reason"> {
  readonly startMs: number;
  readonly endMs: number;
}

/** Summarizes a run's attempts from its lines, which must be in chronological order. */
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
        const cut = line.aborted && { reason: "the client was gone" };
        attempts.push({
          attempt,
          state,
          status,
          ...times,
          ...cut,
          ...(isFailed && reasonOf(failure)),
        });
        [open, failure, next] = nothing;
      }
    } else if (!isLate.test(msg)) {
      if (failure === undefined) open ??= line;
      else if (ms > failure.ms) next ??= line;
    }
  }
  if (failure !== undefined) failed(failure);
  // Lines that a run writes after its end do not start another attempt.
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

export function least(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
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

function reasonOf(failure: TraceLine | undefined): Pick<Attempt, "reason"> {
  if (failure === undefined) return {};
  const { message, reason, error, status } = failure;
  const text = message ?? reason;
  if (text === undefined) return error === undefined ? {} : { reason: error };
  return { reason: error === undefined || (status ?? 500) >= 500 ? text : `${error}: ${text}` };
}
