import type { Server } from "../../app/server/server.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { marked } from "../lambda-http/function-mark.ts";
import type { TimedContext } from "../lambda-http/time-left.ts";
import type { FiredSchedules } from "./fire-schedules.ts";

/** A Lambda function for a rule that calls it each minute. */
export type LambdaScheduleHandler = (
  event?: unknown,
  context?: TimedContext,
) => Promise<FiredSchedules>;

/**
 * Makes a Lambda function for a rule of one minute, `rate(1 minute)`. It lets the schedules of the server fire that are due, each
 * once however many processes and calls there are, and tells what came of them. What fails is tried again by a later call.
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
