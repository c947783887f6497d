import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { expect, test, vi } from "vitest";
import { recordedMetrics } from "../../../test/support/recorded-metrics.ts";
import { NotSentError } from "../stores/table.ts";
import { measureCalls } from "./measured-calls.ts";

test("measures a call by its operation, and by the name of its error if it fails", async () => {
  const { metrics, values } = recordedMetrics();
  const failures: unknown[] = [
    Object.assign(new Error("slow down"), { name: "ThrottlingException" }),
    "no error at all",
    new NotSentError(), // of a command that was only converted
  ];
  const client = new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "s" },
  });
  client.middlewareStack.add(
    () => async () => {
      const [failure] = failures.splice(0, 1);
      if (failure !== undefined) throw failure;
      return { output: { $metadata: {} }, response: {} };
    },
    { step: "initialize", priority: "low" },
  );
  measureCalls(metrics).client(client);
  const call = () =>
    client
      .send(new GetItemCommand({ TableName: "t", Key: { pk: { S: "1" } } }))
      .catch(() => undefined);
  for (let count = 0; count < 4; count += 1) await call();

  expect(values.map(([series]) => series)).toEqual([
    "db.client.operation.duration aws.dynamodb GetItem ThrottlingException",
    "db.client.operation.duration aws.dynamodb GetItem _OTHER",
    "db.client.operation.duration aws.dynamodb GetItem",
  ]);
});

test("measures rows read without the SDK in the same way, except those that the SDK then reads", async () => {
  const { metrics, values } = recordedMetrics();
  const answers = [[{}], [], undefined];
  const put = async () => undefined;
  const rows = measureCalls(metrics).rows({ read: async () => answers.shift(), put });

  expect(await rows.read("t", { operation: "BatchGetItem", input: {} })).toEqual([{}]);
  expect(await rows.read("t", { operation: "Query", input: {} })).toEqual([]);
  expect(await rows.read("t", { operation: "Query", input: {} })).toBeUndefined();
  expect(values.map(([series]) => series)).toEqual([
    "db.client.operation.duration aws.dynamodb BatchGetItem",
    "db.client.operation.duration aws.dynamodb Query",
  ]);
});

test("measures items put without the SDK, and their failures by name", async () => {
  const { metrics, values } = recordedMetrics();
  const refusal = Object.assign(new Error("no"), { name: "ConditionalCheckFailedException" });
  const put = vi
    .fn()
    .mockResolvedValueOnce(true)
    .mockResolvedValueOnce(undefined)
    .mockRejectedValueOnce(refusal);
  const rows = measureCalls(metrics).rows({ read: async () => undefined, put });
  const item = { TableName: "t", Item: {} };

  expect([await rows.put(item), await rows.put(item)]).toEqual([true, undefined]);
  await expect(rows.put(item)).rejects.toBe(refusal);
  expect(values.map(([series]) => series)).toEqual([
    "db.client.operation.duration aws.dynamodb PutItem",
    "db.client.operation.duration aws.dynamodb PutItem ConditionalCheckFailedException",
  ]);
});
