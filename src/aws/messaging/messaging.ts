import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import type { SQSClient } from "@aws-sdk/client-sqs";
import type { Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import type { FairMode } from "../../parts/messages/job-route.ts";
import { isOrdered } from "../../parts/messages/message-queue.ts";
import { type ClientOptions, clientOptions, type MessagingSdk } from "../clients/client-options.ts";
import { eventBridgeBus } from "./event-bus.ts";
import { deadQueueName, queueName, sqsQueue, visibilitySeconds } from "./sqs-queue.ts";

export interface MessagingNames {
  readonly bus: string;
  readonly source: string;
  /** A name or a URL, like `jobs`. */
  readonly events: string;
  readonly jobs: string;
  readonly fairJobs: string;
  readonly fairMode: FairMode;
}

export const fairModeVariable = "KEELSON_FAIR_JOBS";

/**
 * Names from `KEELSON_EVENT_BUS`, `KEELSON_EVENT_QUEUE` and `KEELSON_JOB_QUEUE`, by default derived
 * from the prefix of the tables. The queue of `KEELSON_FAIR_JOB_QUEUE` has by default the name of
 * the queue of jobs without `.fifo`.
 *
 * @throws Error if `KEELSON_FAIR_JOBS` is not a mode.
 */
export function messagingNames(
  prefix: string,
  variables: Variables,
  otherwise: FairMode = "off",
): MessagingNames {
  const base = prefix.replaceAll(".", "-");
  const jobs = variables["KEELSON_JOB_QUEUE"] || `${base}-jobs.fifo`;
  return {
    bus: variables["KEELSON_EVENT_BUS"] || prefix,
    source: prefix,
    events: variables["KEELSON_EVENT_QUEUE"] || `${base}-events`,
    jobs,
    fairJobs: variables["KEELSON_FAIR_JOB_QUEUE"] || fairName(jobs),
    fairMode: fairModeOf(variables[fairModeVariable] || otherwise),
  };
}

function fairName(jobs: string): string {
  return isOrdered(jobs) ? jobs.slice(0, -".fifo".length) : `${jobs}-fair`;
}

function fairModeOf(given: string): FairMode {
  if (given === "off" || given === "receive" || given === "send") return given;
  throw new Error(`${fairModeVariable} is ${quoted(given)}; use off, receive or send`);
}

export interface MessagingOptions extends Omit<ClientOptions, "endpoint"> {
  readonly sqsEndpoint: string | undefined;
  readonly eventBridgeEndpoint: string | undefined;
  readonly names: MessagingNames;
  /** `create` creates missing resources of an emulator. On AWS, the deployment creates them. */
  readonly mode: "create" | "check";
}

/** Receives before a message moves to the dead-letter queue, in queues that keelson creates. */
export const maxReceives = 5;

/** Rule that routes a server's events from the bus to their queue. */
export function eventRule(source: string) {
  return {
    name: `${source.replaceAll(".", "-")}-events`,
    pattern: { source: [source] },
    targetId: "events",
  };
}

export async function openMessaging(
  runtime: Pick<Runtime, "runs">,
  options: MessagingOptions,
): Promise<Messaging> {
  const { sqsEndpoint, eventBridgeEndpoint, names, mode, ...account } = options;
  const sdk = await import("../clients/messaging-sdk.ts");
  const sqs = new sdk.SQSClient(clientOptions({ ...account, endpoint: sqsEndpoint }));
  const eventBridge = new sdk.EventBridgeClient(
    clientOptions({ ...account, endpoint: eventBridgeEndpoint }),
  );
  const close = () => {
    sqs.destroy();
    eventBridge.destroy();
  };
  const pause = async (attempt: number) => (await runtime.runs.open()).once.pause(attempt);
  if (mode === "create") {
    try {
      await create(sdk, sqs, eventBridge, names, pause);
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
    queue: (name) => sqsQueue(sdk, sqs, name),
    sqs,
    // Safe: a command passes through the middlewares unchanged, regardless of the client.
    clients: [sqs, eventBridge] as unknown as readonly Pick<Database, "middlewareStack">[],
    close,
  };
}

type Pause = (attempt: number) => Promise<void>;

async function create(
  sdk: MessagingSdk,
  sqs: SQSClient,
  eventBridge: EventBridgeClient,
  names: MessagingNames,
  pause: Pause,
): Promise<void> {
  /** Returns the queue's ARN. An existing queue with other attributes stays unchanged. */
  const createOne = async (QueueName: string, Attributes: Record<string, string>) => {
    let url: string | undefined;
    try {
      const command = new sdk.CreateQueueCommand({ QueueName, Attributes });
      ({ QueueUrl: url } = await sqs.send(command));
    } catch (error) {
      if (!(error instanceof Error) || !error.name.startsWith("QueueNameExists")) throw error;
      ({ QueueUrl: url } = await sqs.send(new sdk.GetQueueUrlCommand({ QueueName })));
    }
    const asked = { QueueUrl: url, AttributeNames: ["QueueArn" as const] };
    const found = await sqs.send(new sdk.GetQueueAttributesCommand(asked));
    return String(found.Attributes?.["QueueArn"]);
  };
  const createQueue = async (nameOrUrl: string) => {
    const queue = queueName(nameOrUrl);
    const ordered: Record<string, string> = isOrdered(queue) ? { FifoQueue: "true" } : {};
    const deadLetterTargetArn = await createOne(deadQueueName(queue), ordered);
    return createOne(queue, {
      ...ordered,
      VisibilityTimeout: String(visibilitySeconds),
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: maxReceives }),
    });
  };
  const jobQueues = names.fairMode === "off" ? [names.jobs] : [names.jobs, names.fairJobs];
  const [events] = await Promise.all([names.events, ...jobQueues].map(createQueue));
  try {
    await alone(() => eventBridge.send(new sdk.CreateEventBusCommand({ Name: names.bus })), pause);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ResourceAlreadyExistsException") throw error;
  }
  const { name, pattern, targetId } = eventRule(names.source);
  const rule = { EventBusName: names.bus, Name: name, EventPattern: JSON.stringify(pattern) };
  await alone(() => eventBridge.send(new sdk.PutRuleCommand(rule)), pause);
  const targets = { EventBusName: names.bus, Rule: name, Targets: [{ Id: targetId, Arn: events }] };
  const put = () => eventBridge.send(new sdk.PutTargetsCommand(targets));
  const { FailedEntries: [failed] = [] } = await alone(put, pause);
  if (failed !== undefined)
    throw new Error(
      `EventBridge does not put the events of the bus ${names.bus} into ${events}: ${failed.ErrorMessage}`,
    );
}

const mostChanges = 10;

/** Repeats a change that EventBridge refuses because of a concurrent change. */
async function alone<Answer>(change: () => Promise<Answer>, pause: Pause): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await change();
    } catch (error) {
      const isOvertaken =
        error instanceof Error && error.name === "ConcurrentModificationException";
      if (!isOvertaken || attempt === mostChanges) throw error;
    }
    await pause(attempt);
  }
}
