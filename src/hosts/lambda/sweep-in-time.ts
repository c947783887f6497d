import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Swept } from "../../parts/messages/outbox-store.ts";
import type { TimeLeft } from "./dispatch-records.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/** Minimum age of an outbox row for a scheduled sweep, in milliseconds. */
const graceMs = 10_000;
/**
 * Time before the function's timeout in which a sweep starts no further work, in milliseconds: three
 * attempts of an unanswered call to SQS or the bus. A function with a short timeout keeps half its
 * time.
 */
const endMs = 10_000;

/**
 * Sweeps the outbox until shortly before Lambda ends the process, because a process that is ended
 * logs nothing, records no metric and holds its shards for half a minute.
 */
export async function sweepInTime(
  runtime: Pick<Runtime, "runs" | "clock">,
  { deadlineMs }: TimeLeft,
): Promise<Swept> {
  const { outbox } = await runtime.runs.open();
  if (deadlineMs === undefined) return outbox.sweep({ graceMs });
  const leftMs = Math.max(0, deadlineMs - runtime.clock.now());
  const signal = AbortSignal.timeout(Math.ceil(Math.max(leftMs - endMs, leftMs / 2)));
  return outbox.sweep({ graceMs, signal });
}
