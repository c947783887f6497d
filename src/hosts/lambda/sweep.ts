import type { Server } from "../../app/server/server.ts";
import type { Swept } from "../../parts/messages/outbox-store.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { marked } from "../lambda-http/function-mark.ts";

/** Minimum age of an outbox row for a scheduled sweep, in milliseconds. */
const graceMs = 10_000;

/**
 * Creates a Lambda function for a schedule, such as `rate(1 minute)`. It dispatches events that
 * were committed to the outbox but not dispatched, because the function ended or the event bus
 * failed.
 *
 * @example
 * export const sweep = lambdaSweep(server);
 */
export function lambdaSweep(server: Server): () => Promise<Swept> {
  const invoked = prepareLambda(server, () => import("../lambda-http/lambda-runtime.ts"));
  const sweep = async () => {
    const { loaded, runtime } = await invoked.open();
    if (runtime.log.isSampling) runtime.log.refreshSampling();
    return loaded.measured(runtime, (await runtime.runs.open()).outbox.sweep({ graceMs }));
  };
  return marked(sweep, { kind: "sweep" });
}
