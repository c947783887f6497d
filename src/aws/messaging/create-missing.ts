import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { type Registry, usesMessages } from "../../app/registry/registry.ts";
import { isOrdered } from "../../parts/messages/message-queue.ts";
import type { MessagingSdk } from "../clients/client-options.ts";
import type { MessagingNames } from "./names.ts";
import { deadLetterSeconds, eventRule, maxReceives, receivedRules } from "./rules.ts";
import { deadQueueName, queueName, visibilitySeconds } from "./sqs-queue.ts";

interface Clients {
  readonly sdk: MessagingSdk;
  readonly sqs: SQSClient;
  readonly eventBridge: EventBridgeClient;
  /** Waits before a retry. The first has number 1. */
  readonly pause: (attempt: number) => Promise<void>;
}

/** Creates the buses, rules and queues that an emulator lacks. On AWS, the deployment creates them. */
export async function createMissing(
  clients: Clients,
  names: MessagingNames,
  registry: Pick<Registry, "receivers"> & Parameters<typeof usesMessages>[0],
): Promise<void> {
  if (usesMessages(registry)) {
    const jobs = names.fairMode === "off" ? [names.jobs] : [names.jobs, names.fairJobs];
    const creating = [names.events, ...jobs].map((name) => createQueue(clients, name));
    const [events = ""] = await Promise.all(creating);
    await createBus(clients, names.bus);
    await putRule(clients, { bus: names.bus, ...eventRule(names.source) }, events);
  }
  if (registry.receivers.size === 0) return;
  const received = await createQueue(clients, names.received);
  for (const rule of receivedRules(registry.receivers.values(), queueName(names.received))) {
    const bus = emulatedBus(rule.bus);
    if (bus !== "default") await createBus(clients, bus);
    await putRule(clients, { ...rule, bus }, received);
  }
}

/** The last part of a partner's bus, `aws.partner/example.com/1`: only the partner can create it. */
function emulatedBus(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Creates a queue with its dead-letter queue. Returns its ARN. */
async function createQueue(clients: Clients, nameOrUrl: string): Promise<string> {
  const queue = queueName(nameOrUrl);
  const ordered: Record<string, string> = isOrdered(queue) ? { FifoQueue: "true" } : {};
  const deadLetterTargetArn = await createOne(clients, deadQueueName(queue), {
    ...ordered,
    MessageRetentionPeriod: String(deadLetterSeconds),
  });
  return createOne(clients, queue, {
    ...ordered,
    VisibilityTimeout: String(visibilitySeconds),
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: maxReceives }),
  });
}

/** Returns the queue's ARN. An existing queue with other attributes stays unchanged. */
async function createOne(
  { sdk, sqs }: Clients,
  QueueName: string,
  Attributes: Record<string, string>,
): Promise<string> {
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
}

async function createBus({ sdk, eventBridge, pause }: Clients, Name: string): Promise<void> {
  try {
    await alone(() => eventBridge.send(new sdk.CreateEventBusCommand({ Name })), pause);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ResourceAlreadyExistsException") throw error;
  }
}

interface Rule {
  readonly bus: string;
  readonly name: string;
  readonly pattern: object;
  readonly targetId: string;
}

async function putRule(
  { sdk, eventBridge, pause }: Clients,
  { bus, name, pattern, targetId }: Rule,
  queueArn: string,
): Promise<void> {
  const rule = { EventBusName: bus, Name: name, EventPattern: JSON.stringify(pattern) };
  await alone(() => eventBridge.send(new sdk.PutRuleCommand(rule)), pause);
  const Targets = [{ Id: targetId, Arn: queueArn }];
  const put = () =>
    eventBridge.send(new sdk.PutTargetsCommand({ EventBusName: bus, Rule: name, Targets }));
  const { FailedEntries: [failed] = [] } = await alone(put, pause);
  if (failed !== undefined)
    throw new Error(
      `EventBridge does not put the events of the bus ${bus} into ${queueArn}: ${failed.ErrorMessage}`,
    );
}

const mostChanges = 10;

/** Repeats a change that EventBridge refuses because of a concurrent change. */
async function alone<Answer>(change: () => Promise<Answer>, pause: Clients["pause"]) {
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
