import { consumeOnce } from "../../app/run/task.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createSchedules } from "../../app/schedules/schedules.ts";
import { measured } from "../lambda-http/lambda-runtime.ts";
import { type TimedContext, timeLeft } from "../lambda-http/time-left.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/**
 * Outcome of one invocation: the number of schedules that ran, and the number that failed or could
 * not be checked.
 */
export interface FiredSchedules {
  readonly fired: number;
  readonly failed: number;
}

export function fireSchedules(
  runtime: Runtime,
  context: TimedContext | undefined,
): Promise<FiredSchedules> {
  return measured(runtime, fire(runtime, context));
}

async function fire(runtime: Runtime, context: TimedContext | undefined): Promise<FiredSchedules> {
  if (runtime.log.isSampling) runtime.log.refreshSampling();
  const { deadlineMs } = timeLeft(context, runtime.clock);
  const schedules = await createSchedules(runtime, await runtime.adapters.open(), consumeOnce);
  const looked = await Promise.all(schedules.map((schedule) => schedule.look({ deadlineMs })));
  const count = (...kinds: readonly string[]) =>
    looked.filter(({ kind }) => kinds.includes(kind)).length;
  return { fired: count("fired"), failed: count("failed", "gave-up") };
}
