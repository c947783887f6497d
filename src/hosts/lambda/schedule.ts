import type { Server } from "../../app/server/server.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { marked } from "../lambda-http/function-mark.ts";
import type { TimedContext } from "../lambda-http/time-left.ts";
import type { FiredSchedules } from "./fire-schedules.ts";

/** Lambda function that runs due schedules. */
export type LambdaScheduleHandler = (
  event?: unknown,
  context?: TimedContext,
) => Promise<FiredSchedules>;

/**
 * Creates a Lambda function for a rule that invokes it every minute, `rate(1 minute)`. It runs the
 * server's due schedules and returns how many ran and failed. Each scheduled run happens once,
 * regardless of the number of processes and invocations. A later invocation retries failed runs.
 *
 * @example
 * export const schedule = lambdaSchedule(server);
 */
export function lambdaSchedule(server: Server): LambdaScheduleHandler {
  const invoked = prepareLambda(server, () => import("./fire-schedules.ts"));
  const fire: LambdaScheduleHandler = async (_event, context) => {
    const { loaded, runtime } = await invoked.open();
    return loaded.fireSchedules(runtime, context);
  };
  return marked(fire, { kind: "schedule" });
}
