import {
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import { DeleteMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { expect, test } from "vitest";
import { type AmbientStore, type RunCost, runWithStore } from "../../base/request/ambient.ts";
import { countCosts } from "./counted-costs.ts";

const account = { region: "us-east-1", credentials: { accessKeyId: "a", secretAccessKey: "s" } };

/** A client whose calls are answered by `answer`. */
function clientOf<Client extends DynamoDBClient | SQSClient>(
  client: Client,
  answer: (input: Readonly<Record<string, unknown>>) => object,
): Client {
  const { middlewareStack } = client as DynamoDBClient; // both have the same kind of stack
  middlewareStack.add(
    () => async (given) => ({
      output: { $metadata: {}, ...answer(given.input as Readonly<Record<string, unknown>>) },
      response: {},
    }),
    { step: "initialize", priority: "low" },
  );
  countCosts(client as DynamoDBClient);
  return client;
}

/** The consumption of a run that does this work. */
async function costOf(work: () => Promise<unknown>): Promise<RunCost | undefined> {
  const store = {} as AmbientStore; // only its cost is used
  await runWithStore(store, work).catch(() => undefined);
  return store.cost;
}

const nothing = { readUnits: 0, writeUnits: 0, messageBytes: 0 };
const key = { TableName: "t", Key: { pk: { S: "1" } } };
const put = new PutItemCommand({ TableName: "t", Item: { pk: { S: "1" } } });

test("a call outside of a run is sent unchanged", async () => {
  const asked: unknown[] = [];
  const client = clientOf(new DynamoDBClient(account), (input) => {
    asked.push(input["ReturnConsumedCapacity"]);
    return {};
  });
  await client.send(new GetItemCommand(key));

  expect(asked).toEqual([undefined]);
  expect(await costOf(() => client.send(new GetItemCommand(key)))).toEqual(nothing);
  expect(asked).toEqual([undefined, "TOTAL"]);
});

test("a caller sees the units only if it asks for them", async () => {
  const ConsumedCapacity = { TableName: "t", CapacityUnits: 2 };
  const client = clientOf(new DynamoDBClient(account), () => ({
    ConsumedCapacity: { ...ConsumedCapacity },
  }));
  const seen: unknown[] = [];
  const get = async (asked?: "NONE" | "INDEXES") => {
    const input = asked === undefined ? key : { ...key, ReturnConsumedCapacity: asked };
    seen.push((await client.send(new GetItemCommand(input))).ConsumedCapacity);
  };
  const cost = await costOf(async () => {
    for (const asked of [undefined, "NONE", "INDEXES"] as const) await get(asked);
  });

  expect(cost).toEqual({ ...nothing, readUnits: 6 });
  expect(seen).toEqual([undefined, undefined, ConsumedCapacity]);
});

test("an answer without units consumes nothing, nor does a call that has none", async () => {
  const client = clientOf(new DynamoDBClient(account), () => ({ ConsumedCapacity: [{}] }));
  const sqs = clientOf(new SQSClient(account), () => ({}));

  expect(
    await costOf(async () => {
      await client.send(put);
      await client.send(new DescribeTableCommand({ TableName: "t" }));
      await sqs.send(new DeleteMessageCommand({ QueueUrl: "http://q", ReceiptHandle: "r" }));
    }),
  ).toEqual(nothing);
});

test.each([
  ["a refused condition", { name: "ConditionalCheckFailedException" }, put, 1],
  [
    "a refused condition on a stored item of 3 KB",
    {
      name: "ConditionalCheckFailedException",
      Item: {
        pk: { S: "1" },
        text: { S: "x".repeat(2_000) },
        raw: { B: new Uint8Array(300) },
        all: { L: [{ S: "x".repeat(200) }] },
      },
    },
    put,
    3,
  ],
  [
    "a cancelled transaction",
    { name: "TransactionCanceledException" },
    new TransactWriteItemsCommand({ TransactItems: [{ Delete: key }, { Delete: key }] }),
    4,
  ],
  ["a throttled call", { name: "ThrottlingException" }, put, 0],
])("%s is charged by its items", async (_name, members, command, writeUnits) => {
  const client = clientOf(new DynamoDBClient(account), () => {
    throw Object.assign(new Error("refused"), members);
  });

  expect(await costOf(() => client.send(command as PutItemCommand))).toEqual({
    ...nothing,
    writeUnits,
  });
});

test("an error that is none is not charged", async () => {
  const client = clientOf(new DynamoDBClient(account), () => {
    throw "no error at all";
  });

  expect(await costOf(() => client.send(put))).toEqual(nothing);
});
