// The contents of the tables and queues of a stack, in AWS's form: this file does not use keelson's own readers.
import {
  type AttributeValue,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from "@aws-sdk/client-dynamodb";
import {
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { SQSRecord } from "aws-lambda";

/** An item in its typed form. */
export type Item = Record<string, AttributeValue>;

/** The tables by their names without the prefix, with the names of their keys. */
const tables = {
  config: ["pk", "sk"],
  once: ["pk", "sk"],
  outbox: ["pk", "sk"],
  effects: ["pk"],
  calls: ["id"],
  sorted: ["pk", "sk"],
} as const;

export type TableName = keyof typeof tables;

const queues = {
  events: "keelson-events",
  jobs: "keelson-jobs.fifo",
  fair: "keelson-jobs",
} as const;

export type QueueName = keyof typeof queues;

/** Items by their tables. */
export type Items = Readonly<Partial<Record<TableName, readonly Item[]>>>;

/** A message as a queue holds it. */
export interface KeptMessage {
  readonly queue: QueueName;
  readonly body: string;
  readonly group?: string;
  readonly deduplicationId?: string;
}

/** A message that was received. */
export interface ReceivedMessage {
  readonly kept: KeptMessage;
  /** As a Lambda function gets it. */
  readonly record: SQSRecord;
  remove(): Promise<void>;
}

/** The tables and queues of a stack. */
export interface Store {
  readonly dynamoDb: DynamoDBClient;
  /** All items of all tables, or all but those that hold a part of something large. */
  items(which?: "all" | "small"): Promise<Items>;
  put(items: Items): Promise<void>;
  remove(items: Items): Promise<void>;
  /** Makes items older, in place. */
  age(items: Items, byMs: number): Promise<void>;
  /** Number of commits of an effect. */
  effect(tenantId: string, what: string, name: string): Promise<number>;
  receive(queue: QueueName): Promise<readonly ReceivedMessage[]>;
  send(message: KeptMessage): Promise<void>;
  /** Number of messages in queues, including hidden ones. Default: the queues that every version reads. */
  waiting(...queues: readonly QueueName[]): Promise<number>;
  close(): void;
}

/** Opens the tables and queues of the stack at `endpoint`. */
export function openStore(endpoint: string): Store {
  const options = {
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  };
  const [dynamoDb, sqs] = [new DynamoDBClient(options), new SQSClient(options)];
  const urlOf = (queue: QueueName) => `${endpoint}/000000000000/${queues[queue]}`;
  const tableNames = Object.keys(tables) as TableName[]; // safe: they are its keys
  const physical = (table: TableName) => `keelson-${table}`;

  const small = {
    FilterExpression: "attribute_not_exists(#data) OR size(#data) < :most",
    ExpressionAttributeNames: { "#data": "data" },
    ExpressionAttributeValues: { ":most": { N: "10000" } },
  };
  const itemsOf = async (table: TableName, which: "all" | "small") => {
    const items: Item[] = [];
    let from: Item | undefined;
    do {
      const { Items = [], LastEvaluatedKey } = await dynamoDb.send(
        new ScanCommand({
          TableName: physical(table),
          ConsistentRead: true,
          ...(which === "small" ? small : {}),
          ...(from === undefined ? {} : { ExclusiveStartKey: from }),
        }),
      );
      items.push(...Items);
      from = LastEvaluatedKey;
    } while (from !== undefined);
    return items;
  };
  const store: Store = {
    dynamoDb,
    items: async (which = "all") =>
      Object.fromEntries(
        await Promise.all(tableNames.map(async (table) => [table, await itemsOf(table, which)])),
      ),
    put: async (items) => {
      for (const [table, list] of entriesOf(items))
        for (const Item of list)
          await dynamoDb.send(new PutItemCommand({ TableName: physical(table), Item }));
    },
    remove: async (items) => {
      for (const [table, list] of entriesOf(items))
        for (const item of list) {
          const Key = Object.fromEntries(
            tables[table].map((name) => [name, item[name] as AttributeValue]),
          );
          await dynamoDb.send(new DeleteItemCommand({ TableName: physical(table), Key }));
        }
    },
    age: async (items, byMs) => {
      await store.remove(items);
      await store.put(shifted(items, -byMs));
    },
    effect: async (tenantId, what, name) => {
      const Key = { pk: { S: `${tenantId} ${what} ${name}` } };
      const command = new GetItemCommand({
        TableName: physical("effects"),
        Key,
        ConsistentRead: true,
      });
      return Number((await dynamoDb.send(command)).Item?.["amount"]?.N ?? 0);
    },
    receive: async (queue) => {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: urlOf(queue),
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 0,
          MessageSystemAttributeNames: ["All"],
        }),
      );
      return Messages.map((message) => ({
        ...received(queue, message),
        remove: async () => {
          await sqs.send(
            new DeleteMessageCommand({
              QueueUrl: urlOf(queue),
              ReceiptHandle: message.ReceiptHandle,
            }),
          );
        },
      }));
    },
    send: async ({ queue, body, group, deduplicationId }) => {
      const ordered = { MessageGroupId: group, MessageDeduplicationId: deduplicationId };
      const command = {
        QueueUrl: urlOf(queue),
        MessageBody: body,
        ...(group === undefined ? {} : ordered),
      };
      await sqs.send(new SendMessageCommand(command));
    },
    waiting: async (...given) => {
      const names = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
      ] as const;
      const asked = given.length > 0 ? given : (["events", "jobs"] as const);
      const sizes = asked.map(async (queue) => {
        const command = new GetQueueAttributesCommand({
          QueueUrl: urlOf(queue),
          AttributeNames: [...names],
        });
        const { Attributes = {} } = await sqs.send(command);
        return names.reduce((sum, name) => sum + Number(Attributes[name]), 0);
      });
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    },
    close: () => {
      dynamoDb.destroy();
      sqs.destroy();
    },
  };
  return store;
}

/** The items of `after` that `before` has not, or has otherwise, by their keys. */
export function newItems(before: Items, after: Items): Items {
  const left = entriesOf(after).map(([table, items]) => {
    const known = new Set((before[table] ?? []).map(textOf));
    const keyOf = (item: Item) => tables[table].map((name) => item[name]?.S).join();
    const found = items.filter((item) => !known.has(textOf(item)));
    return [table, found.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))] as const;
  });
  return Object.fromEntries(left.filter(([, items]) => items.length > 0));
}

/** The times in an item by which it ends, and how many of them are a millisecond. */
const times: Readonly<Record<string, number>> = {
  expiration: 1_000,
  in_progress_expiration: 1,
  expiresAt: 1_000,
};

/** The items with their times moved on. */
export function shifted(items: Items, byMs: number): Items {
  return Object.fromEntries(
    entriesOf(items).map(([table, list]) => [
      table,
      list.map((item) =>
        Object.fromEntries(
          Object.entries(item).map(([name, value]): [string, AttributeValue] => {
            const unitMs = times[name];
            if (unitMs !== undefined && value.N !== undefined)
              return [name, { N: `${Math.ceil(Number(value.N) + byMs / unitMs)}` }];
            // The sort key of an outbox row starts with the time of its write.
            if (table === "outbox" && name === "sk")
              return [name, { S: shiftedSort(String(value.S), byMs) }];
            return [name, value];
          }),
        ),
      ),
    ]),
  );
}

function shiftedSort(sort: string, byMs: number): string {
  const [time = "", ...rest] = sort.split("#");
  return [String(Number(time) + byMs).padStart(time.length, "0"), ...rest].join("#");
}

function entriesOf(items: Items): readonly (readonly [TableName, readonly Item[]])[] {
  return Object.entries(items) as unknown as readonly (readonly [TableName, readonly Item[]])[]; // safe: its keys are these
}

function textOf(item: Item): string {
  return JSON.stringify(item, (_name, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
  );
}

function received(queue: QueueName, { MessageId, Body, ReceiptHandle, Attributes = {} }: Message) {
  const { MessageGroupId: group, MessageDeduplicationId: deduplicationId } = Attributes;
  return {
    kept: {
      queue,
      body: String(Body),
      ...(group === undefined ? {} : { group }),
      ...(deduplicationId === undefined ? {} : { deduplicationId }),
    },
    record: {
      messageId: String(MessageId),
      receiptHandle: String(ReceiptHandle),
      body: String(Body),
      attributes: Attributes as unknown as SQSRecord["attributes"], // safe: they are the same, from the same queue
      messageAttributes: {},
      md5OfBody: "",
      eventSource: "aws:sqs",
      eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queues[queue]}`,
      awsRegion: "us-east-1",
    },
  };
}
