import type { OnceParts, Run, RunOutcome } from "./claimed-run.ts";
import { RunInProgress } from "./run-in-progress.ts";
import { inProgress, replay, take } from "./take-claim.ts";

/**
 * Runs the work under its claim, or replays an earlier run.
 *
 * @throws the error of the work; FrameworkError `request_in_progress` if the duplicate of a write
 * runs longer than `waitMs`, or `idempotency_key_reused` if the key was used for other work; Error
 * if a message's work is done but could not be recorded; any error of the store if the claim cannot
 * be taken.
 */
export async function performClaimed<Result>(
  parts: OnceParts,
  run: Run<Result>,
): Promise<RunOutcome<Result>> {
  if (run.claim === undefined) return new RunInProgress(parts, run, undefined).ended();
  const taken = await take(parts, run, run.claim);
  if (taken.kind === "running") {
    if (run.claim.kind === "write") throw inProgress();
    return taken;
  }
  if (taken.kind === "done") return replay(parts, run, run.claim, taken);
  return new RunInProgress(parts, run, taken.claim).ended();
}
