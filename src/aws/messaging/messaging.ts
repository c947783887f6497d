import type { Registry } from "../../app/registry/registry.ts";
import type { Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Database } from "../../base/types/database.ts";
import { attemptsWithin, type ClientOptions, clientOptions } from "../clients/client-options.ts";
import { eventBridgeBus } from "./event-bus.ts";
import type { MessagingNames } from "./names.ts";
import { queueName, sqsQueue } from "./sqs-queue.ts";

export interface MessagingOptions extends Omit<ClientOptions, "endpoint"> {
  readonly sqsEndpoint: string | undefined;
  readonly eventBridgeEndpoint: string | undefined;
  readonly names: MessagingNames;
  readonly registry: Registry;
  /** `create` creates missing resources of an emulator. On AWS, the deployment creates them. */
  readonly mode: "create" | "check";
  /** Timeout of one attempt of a call, in milliseconds. Default 5,000; 30,000 for an emulator. */
  readonly attemptMs?: number;
}

export async function openMessaging(
  runtime: Pick<Runtime, "runs">,
  options: MessagingOptions,
): Promise<Messaging> {
  const { sqsEndpoint, eventBridgeEndpoint, names, registry, mode, attemptMs, ...account } =
    options;
  if (registry.receivers.size > 0) refuseShared(names);
  const sdk = await import("../clients/messaging-sdk.ts");
  const clientFor = (endpoint: string | undefined) => ({
    ...clientOptions({ ...account, endpoint }),
    // Longer than a long poll, which takes 3 s. The SDK's three attempts end before a function does.
    requestHandler: attemptsWithin(attemptMs ?? (mode === "create" ? 30_000 : 5_000)),
  });
  const sqs = new sdk.SQSClient(clientFor(sqsEndpoint));
  const eventBridge = new sdk.EventBridgeClient(clientFor(eventBridgeEndpoint));
  const close = () => {
    sqs.destroy();
    eventBridge.destroy();
  };
  const pause = async (attempt: number) => (await runtime.runs.open()).once.pause(attempt);
  if (mode === "create") {
    try {
      const { createMissing } = await import("./create-missing.ts");
      await createMissing({ sdk, sqs, eventBridge, pause }, names, registry);
    } catch (error) {
      close();
      throw error;
    }
  }
  // A shared queue holds both events and jobs.
  const isOne = queueName(names.events) === queueName(names.jobs);
  const jobs = sqsQueue(sdk, sqs, names.jobs, isOne ? undefined : "jobs");
  const fairJobs = sqsQueue(sdk, sqs, names.fairJobs, "jobs");
  return {
    bus: eventBridgeBus(sdk, eventBridge, { busName: names.bus, source: names.source, pause }),
    events: sqsQueue(sdk, sqs, names.events, isOne ? undefined : "events"),
    jobs,
    fairJobs,
    fairMode: names.fairMode,
    received: names.fairMode === "off" ? [jobs] : [jobs, fairJobs],
    others: sqsQueue(sdk, sqs, names.received, "others"),
    queue: (name) => sqsQueue(sdk, sqs, name),
    sqs,
    // Safe: a command passes through the middlewares unchanged, regardless of the client.
    clients: [sqs, eventBridge] as unknown as readonly Pick<Database, "middlewareStack">[],
    close,
  };
}

/**
 * @throws Error if the queue of events of others is one of the server's own: anyone who may put
 * events could then send messages of the server.
 */
function refuseShared({ received, events, jobs, fairJobs }: MessagingNames): void {
  const name = queueName(received);
  if (![events, jobs, fairJobs].map(queueName).includes(name)) return;
  throw new Error(
    `KEELSON_RECEIVED_QUEUE: ${quoted(name)} is a queue of the server's own messages; events of others need their own`,
  );
}
