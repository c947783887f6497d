import type { TraceLine } from "./line.ts";
import type { TraceAttempt } from "./node.ts";

export interface RunSummary {
  readonly attempts: readonly Attempt[];
  readonly startMs: number | undefined;
  readonly last:
    | (Attempt & { readonly state: Exclude<Attempt["state"], "handed-back"> })
    | undefined;
}

export interface Attempt
  extends Pick<TraceAttempt, "attempt" | "state" | "durationMs" | "status" | "reason"> {
  readonly startMs: number;
  readonly endMs: number;
}

/** Summarizes a run's attempts from its lines, which must be in chronological order. */
export function summarize(lines: readonly TraceLine[]): RunSummary {
  const attempts: Attempt[] = [];
  // `next`, the first line after a failure, starts a new attempt if no line ends the failed one.
  let [open, failure, next]: Seen = nothing;
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
        const cut = line.aborted ? { reason: "the client was gone" } : {};
        const why = isFailed ? { ...cut, ...reasonOf(failure) } : {};
        attempts.push({ attempt, state, status, ...times, ...why });
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
  const startMs =
    attempts.length === 0 ? undefined : Math.min(...attempts.map((attempt) => attempt.startMs));
  return { attempts, startMs, last: attempts.findLast(isOwn) };
}

type Seen = readonly [open?: TraceLine, failure?: TraceLine, next?: TraceLine];
const nothing: Seen = [];

const isOver = /^(?:request|event|job|delivery|schedule|run)\.completed$/;
const isFailure = /^(?:request|event|job|schedule|run)\.failed$/;
/** Lines about a run in another process, and lines written after a run ends. */
const isLate = /\.(?:conflicted|replayed|failed_late|after_failed|after_late|gave_up)$/;

function isOwn(attempt: Attempt): attempt is NonNullable<RunSummary["last"]> {
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
