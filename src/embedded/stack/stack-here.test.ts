import { afterAll, beforeAll, expect, test } from "vitest";
import { openStackHere, type StackHere } from "./stack-here.ts";

let stack: StackHere;
beforeAll(async () => {
  stack = await openStackHere(() => Date.now());
});
afterAll(() => stack.close());

const ask = async (target: string, body: string | Uint8Array) => {
  const answer = await stack.answer({ headers: { "x-amz-target": target }, body });
  const parsed: unknown = JSON.parse(Buffer.from(answer.body).toString());
  return [answer.statusCode, parsed] as const;
};

test("answers in the process and over HTTP with the same data, until it is cleared", async () => {
  const QueueUrl = `${stack.endpoint}/000000000000/jobs`;
  const names = { AttributeNames: ["ApproximateNumberOfMessages"], QueueUrl };
  const sizeOf = async () => (await ask("AmazonSQS.GetQueueAttributes", JSON.stringify(names)))[1];
  await ask("AmazonSQS.CreateQueue", '{"QueueName":"jobs"}');
  await ask("AmazonSQS.SendMessage", JSON.stringify({ QueueUrl, MessageBody: "a" }));
  expect(await sizeOf()).toMatchObject({ Attributes: { ApproximateNumberOfMessages: "1" } });
  const response = await fetch(stack.endpoint, {
    method: "POST",
    headers: { "x-amz-target": "AmazonSQS.GetQueueAttributes" },
    body: JSON.stringify(names),
  });
  expect(await response.json()).toEqual(await sizeOf());
  await stack.clear();
  expect(await sizeOf()).toMatchObject({ Attributes: { ApproximateNumberOfMessages: "0" } });
});

test("answers errors as AWS does, and throws what is no request", async () => {
  const bytes = Buffer.from('{"TableName":"none"}');
  expect(await ask("DynamoDB_20120810.DescribeTable", bytes)).toMatchObject([
    400,
    { __type: "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException" },
  ]);
  expect(await ask("S3.GetObject", "{}")).toMatchObject([400, { message: expect.any(String) }]);
  await expect(ask("DynamoDB_20120810.ListTables", "no JSON")).rejects.toThrow(SyntaxError);
});

test("is cleared without queues as well", async () => {
  const empty = await openStackHere(() => 0);
  await empty.clear();
  await empty.close();
});
