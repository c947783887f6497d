import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import type { SQSClient } from "@aws-sdk/client-sqs";
import type { Messaging } from "../../app/runtime/adapters.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import { type ClientOptions, clientOptions } from "../clients/client-options.ts";
import { eventBridgeBus } from "./event-bus.ts";
import { deadQueueName, queueName, sqsQueue, visibilitySeconds } from "./sqs-queue.ts";

/** What the bus and the queues of a server are called. */
export interface MessagingNames {
  readonly bus: string;
  /** The `source` of the server's events. */
  readonly source: string;
  /** Names, or URLs. */
  readonly events: string;
  readonly jobs: string;
}

/** What they are called: `KEELSON_EVENT_BUS`, `KEELSON_EVENT_QUEUE`, `KEELSON_JOB_QUEUE`, else by the prefix of the tables. */
export function messagingNames(prefix: string, variables: Variables): MessagingNames {
  const base = prefix.replaceAll(".", "-");
  return {
    bus: variables["KEELSON_EVENT_BUS"] || prefix,
    source: prefix,
    events: variables["KEELSON_EVENT_QUEUE"] || `${base}-events`,
    jobs: variables["KEELSON_JOB_QUEUE"] || `${base}-jobs.fifo`,
  };
}

/** Where they are, and what is done about what is missing. */
export interface MessagingOptions extends Omit<ClientOptions, "endpoint"> {
  readonly sqsEndpoint: string | undefined;
  readonly eventBridgeEndpoint: string | undefined;
  readonly names: MessagingNames;
  /** An emulator gets what is missing; on AWS it belongs to the deployment. */
  readonly mode: "create" | "check";
}

/** How often a message is received before it goes to the dead-letter queue, in queues that keelson makes. */
export const maxReceives = 5;

/** The rule of the bus that puts a server's events into their queue. */
export function eventRule(source: string) {
  return {
    name: `${source.replaceAll(".", "-")}-events`,
    pattern: { source: [source] },
    targetId: "events",
  };
}

/** Opens the bus and the queues. Their SDK is loaded here, and only here. */
export async function openMessaging(
  runtime: Runtime,
  options: MessagingOptions,
): Promise<Messaging> {
  const { sqsEndpoint, eventBridgeEndpoint, names, mode, ...account } = options;
  const [{ SQSClient }, { EventBridgeClient }] = await Promise.all([
    import("../clients/sqs-sdk.ts"),
    import("../clients/eventbridge-sdk.ts"),
  ]);
  const sqs = new SQSClient(clientOptions({ ...account, endpoint: sqsEndpoint }));
  const eventBridge = new EventBridgeClient(
    clientOptions({ ...account, endpoint: eventBridgeEndpoint }),
  );
  const close = () => {
    sqs.destroy();
    eventBridge.destroy();
  };
  const pause = async (attempt: number) => (await runtime.runs()).once.pause(attempt);
  if (mode === "create") {
    try {
      await create(sqs, eventBridge, names, pause);
    } catch (error) {
      close();
      throw error;
    }
  }
  // One queue for both holds either.
  const isOne = queueName(names.events) === queueName(names.jobs);
  return {
    bus: eventBridgeBus(eventBridge, { busName: names.bus, source: names.source, pause }),
    events: sqsQueue(sqs, names.events, isOne ? undefined : "events"),
    jobs: sqsQueue(sqs, names.jobs, isOne ? undefined : "jobs"),
    queue: (name) => sqsQueue(sqs, name),
    sqs,
    // Safe: whatever the client, a command passes through unchanged.
    clients: [sqs, eventBridge] as unknown as readonly Pick<Database, "middlewareStack">[],
    close,
  };
}

type Pause = (attempt: number) => Promise<void>;

/** Makes what is missing: two queues with their dead-letter queues, the bus, and the rule that puts its events into a queue. */
async function create(
  sqs: SQSClient,
  eventBridge: EventBridgeClient,
  names: MessagingNames,
  pause: Pause,
): Promise<void> {
  const { CreateEventBusCommand, PutRuleCommand, PutTargetsCommand } = await import(
    "../clients/eventbridge-sdk.ts"
  );
  const [events] = await Promise.all([
    createQueue(sqs, names.events),
    createQueue(sqs, names.jobs),
  ]);
  try {
    await alone(() => eventBridge.send(new CreateEventBusCommand({ Name: names.bus })), pause);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ResourceAlreadyExistsException") throw error;
  }
  const { name, pattern, targetId } = eventRule(names.source);
  const rule = { EventBusName: names.bus, Name: name, EventPattern: JSON.stringify(pattern) };
  await alone(() => eventBridge.send(new PutRuleCommand(rule)), pause);
  const targets = { EventBusName: names.bus, Rule: name, Targets: [{ Id: targetId, Arn: events }] };
  const { FailedEntries = [] } = await alone(
    () => eventBridge.send(new PutTargetsCommand(targets)),
    pause,
  );
  const [failed] = FailedEntries;
  if (failed !== undefined)
    throw new Error(
      `EventBridge does not put the events of the bus ${names.bus} into ${events}: ${failed.ErrorMessage}`,
    );
}

/** How often a change is tried that EventBridge refuses because another process makes one at the same time. */
const mostChanges = 10;

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

/** Makes a queue and its dead-letter queue, where they are missing; gives the ARN. */
async function createQueue(sqs: SQSClient, nameOrUrl: string): Promise<string> {
  const name = queueName(nameOrUrl);
  const ordered: Record<string, string> = name.endsWith(".fifo") ? { FifoQueue: "true" } : {};
  const dead = await createOne(sqs, deadQueueName(name), ordered);
  return createOne(sqs, name, {
    ...ordered,
    VisibilityTimeout: String(visibilitySeconds),
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: dead, maxReceiveCount: maxReceives }),
  });
}

/** One that is there with other attributes is left as it is. */
async function createOne(
  sqs: SQSClient,
  name: string,
  attributes: Record<string, string>,
): Promise<string> {
  const { CreateQueueCommand, GetQueueAttributesCommand, GetQueueUrlCommand } = await import(
    "../clients/sqs-sdk.ts"
  );
  let url: string | undefined;
  try {
    ({ QueueUrl: url } = await sqs.send(
      new CreateQueueCommand({ QueueName: name, Attributes: attributes }),
    ));
  } catch (error) {
    if (!(error instanceof Error) || !error.name.startsWith("QueueNameExists")) throw error;
    ({ QueueUrl: url } = await sqs.send(new GetQueueUrlCommand({ QueueName: name })));
  }
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["QueueArn"] }),
  );
  return String(Attributes["QueueArn"]);
}
