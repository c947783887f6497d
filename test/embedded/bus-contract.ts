import { randomBytes } from "node:crypto";
import {
  CreateEventBusCommand,
  DeleteEventBusCommand,
  DeleteRuleCommand,
  type EventBridgeClient,
  ListRulesCommand,
  PutEventsCommand,
  type PutEventsRequestEntry,
  PutRuleCommand,
  type PutRuleCommandInput,
  PutTargetsCommand,
  RemoveTargetsCommand,
  type Target,
} from "@aws-sdk/client-eventbridge";
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";

/** One connection to the EventBridge under test, and to the SQS that it delivers to. */
export interface EventBridgeConnection {
  readonly client: EventBridgeClient;
  readonly sqs: SQSClient;
  close(): Promise<void>;
}

/** Where implementations are known to differ. */
export interface EventBridgeCapabilities {
  /** A pattern that is none, no entries, and more than 1,048,576 bytes are refused. */
  readonly checksInput: boolean;
  /** A rule that is disabled gets no event, also not one that was put before it is enabled. */
  readonly disablesRules: boolean;
  /** A target's MessageGroupId may be a path into the event. */
  readonly resolvesGroups: boolean;
}

/** The buses and queues of one run of the contract, and what is done with them. */
export type ContractBuses = ReturnType<typeof contractBuses>;

/** Makes buses and queues under names of their own. `connection` is asked only once tests run. */
export function contractBuses(connection: () => EventBridgeConnection) {
  const base = `contract-${fresh()}`;
  const buses: string[] = [];
  const queues: string[] = [];
  const client = () => connection().client;

  const createBus = async () => {
    const Name = `${base}-${fresh()}`;
    await client().send(new CreateEventBusCommand({ Name }));
    buses.push(Name);
    return Name;
  };
  const createQueue = async (Attributes: Record<string, string> = {}) => {
    const QueueName = `${base}-${fresh()}${Attributes["FifoQueue"] === "true" ? ".fifo" : ""}`;
    const { QueueUrl = "" } = await connection().sqs.send(
      new CreateQueueCommand({ QueueName, Attributes }),
    );
    queues.push(QueueUrl);
    const asked = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] });
    return {
      url: QueueUrl,
      arn: (await connection().sqs.send(asked)).Attributes?.["QueueArn"] ?? "",
    };
  };
  const putRule = async (
    EventBusName: string,
    pattern: object,
    more: Partial<PutRuleCommandInput> = {},
  ) => {
    const Name = `rule-${fresh()}`;
    await client().send(
      new PutRuleCommand({ Name, EventBusName, EventPattern: JSON.stringify(pattern), ...more }),
    );
    return Name;
  };
  const putTarget = (EventBusName: string, Rule: string, target: Omit<Target, "Id">) =>
    client().send(
      new PutTargetsCommand({ Rule, EventBusName, Targets: [{ Id: "queue", ...target }] }),
    );
  /** A bus with one rule, whose events come into a queue. */
  const route = async (
    pattern: object,
    target: Partial<Target> = {},
    rule: Partial<PutRuleCommandInput> = {},
  ) => {
    const [bus, queue] = [await createBus(), await createQueue()];
    await putTarget(bus, await putRule(bus, pattern, rule), { Arn: queue.arn, ...target });
    return { bus, url: queue.url };
  };
  const put = (...Entries: PutEventsRequestEntry[]) =>
    client().send(new PutEventsCommand({ Entries }));
  const entry = (
    EventBusName: string,
    Detail: unknown,
    more: Partial<PutEventsRequestEntry> = {},
  ): PutEventsRequestEntry => ({
    EventBusName,
    Source: "shop",
    DetailType: "OrderPlaced",
    Detail: JSON.stringify(Detail),
    ...more,
  });
  const receiveOne = async (QueueUrl: string): Promise<Message> => {
    const asked = new ReceiveMessageCommand({
      QueueUrl,
      WaitTimeSeconds: 10,
      MessageSystemAttributeNames: ["All"],
    });
    const [message] = (await connection().sqs.send(asked)).Messages ?? [];
    if (message === undefined) throw new Error("Nothing was received within 10 seconds");
    await connection().sqs.send(
      new DeleteMessageCommand({ QueueUrl, ReceiptHandle: message.ReceiptHandle }),
    );
    return message;
  };
  const eventIn = async (url: string) => JSON.parse((await receiveOne(url)).Body ?? "");
  const deleteAll = async () => {
    for (const EventBusName of buses) {
      const { Rules = [] } = await client()
        .send(new ListRulesCommand({ EventBusName }))
        .catch(() => ({ Rules: [] })); // it is gone
      for (const { Name } of Rules) {
        await client().send(new RemoveTargetsCommand({ Rule: Name, EventBusName, Ids: ["queue"] }));
        await client().send(new DeleteRuleCommand({ Name, EventBusName }));
      }
      await client().send(new DeleteEventBusCommand({ Name: EventBusName }));
    }
    for (const QueueUrl of queues)
      await connection().sqs.send(new DeleteQueueCommand({ QueueUrl }));
  };
  return {
    base,
    client,
    createBus,
    createQueue,
    putRule,
    putTarget,
    route,
    put,
    entry,
    receiveOne,
    eventIn,
    deleteAll,
  };
}

/** The name of the error that a call fails with, `taken` where it does not. */
export function refused(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "taken",
    (error: Error) => error.name,
  );
}

function fresh(): string {
  return randomBytes(6).toString("hex");
}
