import { consumeOnce } from "../../app/run/task.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createSchedules } from "../../app/schedules/schedules.ts";
import type { TimeLeft } from "./dispatch-records.ts";

export { createLambdaRuntime, loadSdk, openMeasuring } from "../lambda-http/lambda-runtime.ts";

/**
 * Outcome of one invocation: the number of schedules that ran, and the number that failed or could
 * not be checked.
 */
export interface FiredSchedules {
  readonly fired: number;
  readonly failed: number;
}

export async function fireSchedules(
  runtime: Runtime,
  { deadlineMs }: TimeLeft,
): Promise<FiredSchedules> {
  const adapters = await runtime.adapters.open();
  const schedules = await createSchedules(runtime, adapters, consumeOnce);
  const looked = await Promise.all(schedules.map((schedule) => schedule.look({ deadlineMs })));
  const count = (...kinds: readonly string[]) =>
    looked.filter(({ kind }) => kinds.includes(kind)).length;
  return { fired: count("fired"), failed: count("failed", "gave-up") };
}
