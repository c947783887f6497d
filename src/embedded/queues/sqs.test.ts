import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import type { CallContext } from "../service/service.ts";
import { createFrontServer } from "../stack/front-server.ts";
import { openSqs, type Sqs } from "./sqs.ts";

interface Received {
  readonly MessageId: string;
  readonly Body: string;
  readonly ReceiptHandle: string;
  readonly Attributes?: Readonly<Record<string, string>>;
}

let directory: string;
let path: string;
let sqs: Sqs;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-sqs-"));
  path = join(directory, "queues.jsonl");
  sqs = openSqs({ path, region: "eu-west-1" });
});
afterEach(() => {
  vi.restoreAllMocks();
  sqs.close();
  rmSync(directory, { recursive: true });
});

const start = 1_700_000_000_000;
const at = (nowMs = start, signal = new AbortController().signal): CallContext => ({
  nowMs,
  endpoint: "http://here",
  signal,
});
const call = (operation: string, input: object, context = at()) =>
  sqs.call(operation, { ...input }, context);
const QueueUrl = "http://here/000000000000/q";
const fifoUrl = `${QueueUrl}.fifo`;
const create = (QueueName: string, Attributes: object = {}) =>
  call("CreateQueue", { QueueName, Attributes });
const createFifo = (QueueName: string, more: object = {}) =>
  create(QueueName, { FifoQueue: "true", ContentBasedDeduplication: "true", ...more });
const send = (MessageBody: string, more: object = {}, context = at()) =>
  call("SendMessage", { QueueUrl, MessageBody, ...more }, context) as Promise<{
    MessageId: string;
  }>; // what SendMessage answers
const receive = async (url = QueueUrl, context = at(), more: object = {}) => {
  const input = { QueueUrl: url, MaxNumberOfMessages: 10, AttributeNames: ["All"], ...more };
  return (
    ((await call("ReceiveMessage", input, context)) as { Messages?: Received[] }).Messages ?? []
  ); // what ReceiveMessage answers
};
const attributesOf = async (url = QueueUrl, context = at()) => {
  const answer = await call(
    "GetQueueAttributes",
    { QueueUrl: url, AttributeNames: ["All"] },
    context,
  );
  return (answer as { Attributes: Record<string, string> }).Attributes; // what GetQueueAttributes answers
};
const restart = () => {
  sqs = openSqs({ path, region: "eu-west-1" }); // the one before was killed: nobody closed it
};
const arn = (name: string) => `arn:aws:sqs:eu-west-1:000000000000:${name}`;
const redriveTo = (name: string, maxReceiveCount: unknown = 1) => ({
  RedrivePolicy: JSON.stringify({ deadLetterTargetArn: arn(name), maxReceiveCount }),
});

describe("after a restart", () => {
  test("keeps queues, delays, handles and messages in flight", async () => {
    await create("q", { VisibilityTimeout: "60" });
    await call("SetQueueAttributes", { QueueUrl, Attributes: { DelaySeconds: "0", Policy: "{}" } });
    await create("other");
    await call("DeleteQueue", { QueueUrl: "http://here/000000000000/other" });
    await send("flies");
    const [flying] = await receive();
    await send("late", { DelaySeconds: 100 });
    await send("waits");

    restart();
    expect(await call("ListQueues", {})).toEqual({ QueueUrls: [QueueUrl] });
    expect(await attributesOf()).toMatchObject({
      QueueArn: arn("q"),
      VisibilityTimeout: "60",
      Policy: "{}",
      ApproximateNumberOfMessages: "1",
      ApproximateNumberOfMessagesNotVisible: "1",
      ApproximateNumberOfMessagesDelayed: "1",
    });
    expect((await receive()).map(({ Body }) => Body)).toEqual(["waits"]);
    await call("DeleteMessage", { QueueUrl, ReceiptHandle: flying?.ReceiptHandle });
    expect((await receive(QueueUrl, at(start + 100_000))).map(({ Body }) => Body)).toEqual([
      "late",
      "waits",
    ]);
  });

  test("a FIFO queue remembers what was sent, and a deleted queue leaves nothing behind", async () => {
    await createFifo("q.fifo");
    const first = await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" });
    const [message] = await receive(fifoUrl);
    await call("DeleteMessage", { QueueUrl: fifoUrl, ReceiptHandle: message?.ReceiptHandle });

    restart();
    expect(await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" })).toEqual(first);
    expect(await receive(fifoUrl)).toEqual([]);
    const later = await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" }, at(start + 300_000));
    expect(later.MessageId).not.toBe(first.MessageId);
    await call("DeleteQueue", { QueueUrl: fifoUrl });
    await createFifo("q.fifo");

    restart();
    expect(await receive(fifoUrl)).toEqual([]);
    expect((await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" })).MessageId).not.toBe(
      later.MessageId,
    );
  });

  test("a message is in exactly one queue, its own or its dead-letter queue", async () => {
    await create("dead");
    await create("q", redriveTo("dead"));
    const { MessageId } = await send("x");
    await receive();
    await receive(QueueUrl, at(start + 30_000));
    restart();
    expect(await receive(QueueUrl, at(start + 90_000))).toEqual([]);
    const [letter] = await receive("http://here/000000000000/dead", at(start + 30_000));
    expect(letter).toMatchObject({
      MessageId,
      Attributes: { DeadLetterQueueSourceArn: arn("q"), SentTimestamp: String(start) },
    });
  });

  test("names a file that the embedded stack did not write", () => {
    writeFileSync(path, "{\n");
    expect(() => openSqs({ path })).toThrow(`${path}:1 was not written by the embedded stack`);
  });
});

test("lists queues by name, and by prefix", async () => {
  for (const name of ["b", "a2", "a1"]) await create(name);
  const urls = (...names: string[]) => ({
    QueueUrls: names.map((name) => `http://here/000000000000/${name}`),
  });
  expect(await call("ListQueues", {})).toEqual(urls("a1", "a2", "b"));
  expect(await call("ListQueues", { QueueNamePrefix: "a" })).toEqual(urls("a1", "a2"));
  expect(await call("ListQueues", { QueueNamePrefix: "c" })).toEqual({});
});

test("messages expire at the end of their queue's retention period", async () => {
  await create("q", { MessageRetentionPeriod: "60" });
  await create("default");
  await send("x");
  await send("x", { QueueUrl: "http://here/000000000000/default" });
  expect(await attributesOf(QueueUrl, at(start + 59_999))).toMatchObject({
    ApproximateNumberOfMessages: "1",
  });
  expect(await receive(QueueUrl, at(start + 60_000))).toEqual([]);
  const fourDays = 4 * 24 * 60 * 60 * 1000;
  expect(
    await receive("http://here/000000000000/default", at(start + fourDays - 60_000), {
      VisibilityTimeout: 0,
    }),
  ).toHaveLength(1);
  expect(await receive("http://here/000000000000/default", at(start + fourDays))).toEqual([]);
});

test("the retention period of dead letters starts over in FIFO queues", async () => {
  await createFifo("dead.fifo");
  await createFifo("q.fifo", redriveTo("dead.fifo", "1"));
  await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" });
  await receive(fifoUrl);
  await receive(fifoUrl, at(start + 30_000));
  const [letter] = await receive("http://here/000000000000/dead.fifo", at(start + 30_000));
  expect(letter?.Attributes).toMatchObject({
    SentTimestamp: String(start + 30_000),
    MessageGroupId: "g",
  });
});

test("messages stay when their dead-letter queue was deleted", async () => {
  await create("dead");
  await create("q", redriveTo("dead"));
  await call("DeleteQueue", { QueueUrl: "http://here/000000000000/dead" });
  await send("x");
  await receive();
  expect(await receive(QueueUrl, at(start + 30_000))).toHaveLength(1);
});

test("setting an attribute to an empty text removes it", async () => {
  await create("dead");
  await create("q", redriveTo("dead"));
  expect(await attributesOf()).toMatchObject({
    RedrivePolicy: `{"deadLetterTargetArn":"${arn("dead")}","maxReceiveCount":1}`,
  });
  await call("SetQueueAttributes", { QueueUrl, Attributes: { RedrivePolicy: "" } });
  expect(await attributesOf()).not.toHaveProperty("RedrivePolicy");
  expect(await create("q", { RedrivePolicy: "" })).toEqual({ QueueUrl });
});

test("the queue's delay applies to messages without their own", async () => {
  await create("q", { DelaySeconds: "10" });
  await createFifo("q.fifo", { DelaySeconds: "10" });
  await send("queue's");
  await send("own", { DelaySeconds: 0 });
  await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g", DelaySeconds: 0 });
  expect((await receive()).map(({ Body }) => Body)).toEqual(["own"]);
  expect(await receive(fifoUrl)).toEqual([]);
  expect(await receive(fifoUrl, at(start + 10_000))).toHaveLength(1);
});

describe("moving dead letters", () => {
  const deadUrl = "http://here/000000000000/dead";
  const deadLetter = async () => {
    await create("dead");
    await create("q", redriveTo("dead"));
    await send("x");
    await receive();
    await receive(QueueUrl, at(start + 30_000));
    await send("sent here", { QueueUrl: deadUrl });
  };
  const later = at(start + 40_000);

  test("returns each to its source queue, except those in flight or without a source", async () => {
    await deadLetter();
    await send("y");
    await receive();
    await receive(QueueUrl, at(start + 30_000));
    await receive(deadUrl, later, { MaxNumberOfMessages: 1 }); // x
    await call("StartMessageMoveTask", { SourceArn: arn("dead") }, later);
    expect((await receive(QueueUrl, later)).map(({ Body }) => Body)).toEqual(["y"]);
    expect((await receive(deadUrl, at(start + 90_000))).map(({ Body }) => Body)).toEqual([
      "x",
      "sent here",
    ]);
  });

  test("moves all to the destination given", async () => {
    await deadLetter();
    await create("third");
    await call(
      "StartMessageMoveTask",
      { SourceArn: arn("dead"), DestinationArn: arn("third") },
      later,
    );
    const moved = await receive("http://here/000000000000/third", later);
    expect(moved.map(({ Body }) => Body).sort()).toEqual(["sent here", "x"]);
    expect(moved[0]?.Attributes).not.toHaveProperty("DeadLetterQueueSourceArn");
  });

  test("refuses a destination that does not exist", async () => {
    await deadLetter();
    const input = { SourceArn: arn("dead"), DestinationArn: "arn:aws:s3:::bucket" };
    await expect(call("StartMessageMoveTask", input)).rejects.toThrow(
      "DestinationArn parameter doesn't exist",
    );
  });
});

describe("a long poll", () => {
  const poll = (context = at(), url = QueueUrl) => receive(url, context, { WaitTimeSeconds: 20 });

  test("ends when a message comes, and only one of several polls gets it", async () => {
    await create("q");
    const polls = [poll(), poll()];
    await send("x");
    expect((await Promise.race(polls)).map(({ Body }) => Body)).toEqual(["x"]);
    sqs.close();
    expect((await Promise.all(polls)).flat()).toHaveLength(1);
  });

  test("ends empty when the polls of its queue are ended, and later polls get the next message", async () => {
    await create("q");
    const polls = [poll(), poll()];
    await call("KeelsonEndPolls", { QueueUrl });
    expect(await Promise.all(polls)).toEqual([[], []]);
    await send("x");
    expect((await poll()).map(({ Body }) => Body)).toEqual(["x"]);
  });

  test("ends when a message becomes visible, by itself or by a visibility change", async () => {
    await create("q");
    await send("x");
    await receive(QueueUrl, at(), { VisibilityTimeout: 1 });
    const [again] = await poll();
    const polling = poll();
    const input = { QueueUrl, ReceiptHandle: again?.ReceiptHandle, VisibilityTimeout: 0 };
    await call("ChangeMessageVisibility", input);
    expect(await polling).toHaveLength(1);
  });

  test("ends when the message before it in its group is deleted", async () => {
    await createFifo("q.fifo");
    for (const body of ["1", "2"]) await send(body, { QueueUrl: fifoUrl, MessageGroupId: "g" });
    const [first] = await receive(fifoUrl, at(), { MaxNumberOfMessages: 1 });
    const polling = poll(at(), fifoUrl);
    await call("DeleteMessage", { QueueUrl: fifoUrl, ReceiptHandle: first?.ReceiptHandle });
    expect((await polling).map(({ Body }) => Body)).toEqual(["2"]);
  });

  test("ends when a dead letter arrives", async () => {
    await create("dead");
    await create("q", redriveTo("dead"));
    await send("x");
    await receive();
    const polling = poll(at(), "http://here/000000000000/dead");
    await receive(QueueUrl, at(start + 30_000));
    expect(await polling).toHaveLength(1);
  });

  test("ends when its queue is deleted", async () => {
    await create("q");
    const polling = poll();
    await call("DeleteQueue", { QueueUrl });
    await expect(polling).rejects.toThrow("The specified queue does not exist.");
  });

  test("ends after the queue's default wait time", async () => {
    await create("q", { ReceiveMessageWaitTimeSeconds: "1" });
    const started = performance.now();
    expect(await receive()).toEqual([]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(990);
  });

  test("takes nothing when the client has hung up, before the poll or during it", async () => {
    await create("q");
    const hungUp = new AbortController();
    const polling = poll(at(start, hungUp.signal));
    hungUp.abort();
    expect(await polling).toEqual([]);
    await send("x");
    expect(await poll(at(start, hungUp.signal))).toEqual([]);
    expect(await receive()).toHaveLength(1);
  });

  test("ends when the stack closes, and later calls are refused", async () => {
    await create("q");
    const polling = poll();
    sqs.close();
    expect(await polling).toEqual([]);
    await expect(send("x")).rejects.toMatchObject({ status: 503 });
  });
});

test("over HTTP, the caller's clock moves visibility and deduplication, and hanging up ends a poll", async () => {
  const server = createFrontServer([sqs], (fault) => console.error(fault)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on TCP, so its address is one
  const post = async (operation: string, input: object, offset = 0) => {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: {
        "x-amz-target": `AmazonSQS.${operation}`,
        "x-keelson-clock-offset": String(offset),
      },
      body: JSON.stringify(input),
    });
    const body = (await response.json()) as {
      QueueUrl?: string;
      MessageId?: string;
      Messages?: Received[];
    }; // what SQS answers
    return { error: response.headers.get("x-amzn-query-error"), body };
  };
  const url = `http://127.0.0.1:${port}/000000000000/q.fifo`;
  const created = await post("CreateQueue", {
    QueueName: "q.fifo",
    Attributes: { FifoQueue: "true" },
  });
  expect(created.body).toEqual({ QueueUrl: url });
  const message = {
    QueueUrl: url,
    MessageBody: "x",
    MessageGroupId: "g",
    MessageDeduplicationId: "d",
  };
  const first = (await post("SendMessage", message)).body.MessageId;
  expect((await post("SendMessage", message, 290_000)).body.MessageId).toBe(first);
  expect((await post("SendMessage", message, 300_000)).body.MessageId).not.toBe(first);
  expect((await post("ReceiveMessage", { QueueUrl: url })).body.Messages).toHaveLength(1);
  expect((await post("ReceiveMessage", { QueueUrl: url }, 20_000)).body.Messages).toBeUndefined();
  expect(
    (await post("ReceiveMessage", { QueueUrl: url, MaxNumberOfMessages: 10 }, 30_000)).body
      .Messages,
  ).toHaveLength(2);
  expect((await post("SendMessage", {})).error).toBe("MissingParameter;Sender");

  await post("PurgeQueue", { QueueUrl: url });
  const headers = { "x-amz-target": "AmazonSQS.ReceiveMessage" };
  const polling = request({ port, method: "POST", headers }).on("error", () => {});
  const received = vi.fn();
  server.on("request", (_request, response) => response.once("close", received));
  polling.end(JSON.stringify({ QueueUrl: url, WaitTimeSeconds: 20 }));
  await once(server, "request");
  polling.destroy();
  await waitFor(() => expect(received).toHaveBeenCalled());
  server.close();
  server.closeAllConnections();
});

describe("refuses the invalid call", () => {
  const entries = (...Entries: unknown[]) => ({ QueueUrl, Entries });
  test.each<[string, object, string]>([
    ["Unknown", {}, "has no operation"],
    ["toString", {}, "has no operation"],
    ["CreateQueue", {}, "must contain the parameter QueueName"],
    ["CreateQueue", { QueueName: 7 }, "Must be a string"],
    ["CreateQueue", { QueueName: "x".repeat(81) }, "1 to 80 in length"],
    ["CreateQueue", { QueueName: "a", Attributes: [] }, "Must be a map"],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: { ContentBasedDeduplication: "true" } },
      "Unknown Attribute",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: { VisibilityTimeout: "43201" } },
      "whole number from 0 to 43200",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: { MaximumMessageSize: "1" } },
      "whole number from 1024 to 1048576",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: { DelaySeconds: "1.5" } },
      "whole number from 0 to 900",
    ],
    [
      "CreateQueue",
      { QueueName: "a.fifo", Attributes: { FifoQueue: "true", DeduplicationScope: "x" } },
      "has to be queue",
    ],
    ["CreateQueue", { QueueName: "a", Attributes: { RedrivePolicy: "{" } }, "not JSON"],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: { RedrivePolicy: "[]" } },
      "has to be a deadLetterTargetArn",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: redriveTo("q", 0) },
      "maxReceiveCount from 1 to 1000",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: redriveTo("q", 1001) },
      "maxReceiveCount from 1 to 1000",
    ],
    [
      "CreateQueue",
      { QueueName: "a", Attributes: redriveTo("q", 1.5) },
      "maxReceiveCount from 1 to 1000",
    ],
    [
      "CreateQueue",
      { QueueName: "q", Attributes: { Policy: "{}" } },
      "different value for attribute Policy",
    ],
    ["GetQueueAttributes", { QueueUrl, AttributeNames: ["Nope"] }, "Unknown Attribute Nope"],
    ["GetQueueAttributes", { QueueUrl, AttributeNames: "All" }, "Must be a list of strings"],
    ["GetQueueAttributes", { QueueUrl, AttributeNames: [7] }, "Must be a list of strings"],
    ["SendMessage", { QueueUrl: "q2", MessageBody: "x" }, "does not exist"],
    ["SendMessage", { QueueUrl, MessageBody: "x", DelaySeconds: 901 }, "between 0 and 900"],
    ["SendMessage", { QueueUrl, MessageBody: "x", DelaySeconds: "1" }, "between 0 and 900"],
    ["SendMessage", { QueueUrl, MessageBody: "x", MessageGroupId: "a b" }, "1 to 128 in length"],
    [
      "SendMessage",
      { QueueUrl: fifoUrl, MessageBody: "x", MessageGroupId: "g", DelaySeconds: 1 },
      "not valid for this queue type",
    ],
    ["SendMessage", { QueueUrl, MessageBody: "x", MessageAttributes: [] }, "Must be a map"],
    [
      "SendMessage",
      { QueueUrl, MessageBody: "x", MessageAttributes: { a: 7 } },
      "not valid for an attribute",
    ],
    [
      "SendMessage",
      { QueueUrl, MessageBody: "x", MessageAttributes: { ".a": {} } },
      "not valid for an attribute",
    ],
    [
      "SendMessage",
      { QueueUrl, MessageBody: "x", MessageAttributes: { a: {} } },
      "DataType has to be",
    ],
    [
      "SendMessage",
      { QueueUrl, MessageBody: "x", MessageAttributes: { a: { DataType: "Text" } } },
      "DataType has to be",
    ],
    [
      "SendMessage",
      { QueueUrl, MessageBody: "x", MessageAttributes: { a: { DataType: "String" } } },
      "no value of the type",
    ],
    [
      "SendMessage",
      {
        QueueUrl,
        MessageBody: "x",
        MessageAttributes: { a: { DataType: "Binary", BinaryValue: "" } },
      },
      "no value of the type",
    ],
    [
      "SendMessage",
      {
        QueueUrl,
        MessageBody: "x",
        MessageAttributes: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`a${n}`, {}])),
      },
      "maximum [10]",
    ],
    [
      "SendMessage",
      {
        QueueUrl,
        MessageBody: "x".repeat(1_048_570),
        MessageAttributes: { a: { DataType: "String", StringValue: "v" } },
      },
      "shorter than 1048576 bytes",
    ],
    ["SendMessageBatch", { QueueUrl, Entries: {} }, "at least one entry"],
    ["SendMessageBatch", entries(7), "batch entry id"],
    ["SendMessageBatch", entries({ MessageBody: "x" }), "batch entry id"],
    [
      "SendMessageBatch",
      entries({ Id: "a", MessageBody: "x".repeat(1_048_576) }, { Id: "b", MessageBody: "x" }),
      "cannot be longer",
    ],
    ["ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 0 }, "between 1 and 10"],
    ["ReceiveMessage", { QueueUrl, VisibilityTimeout: 0.5 }, "between 0 and 43200"],
    [
      "ChangeMessageVisibility",
      { QueueUrl, ReceiptHandle: "YTpi" },
      "must contain the parameter VisibilityTimeout",
    ],
    [
      "ChangeMessageVisibility",
      { QueueUrl, ReceiptHandle: "YTpi", VisibilityTimeout: 1 },
      "not a valid receipt handle",
    ],
  ])("%s %j", async (operation, input, message) => {
    await create("q");
    await createFifo("q.fifo");
    await expect(call(operation, input)).rejects.toThrow(message);
  });
});

test("treats members that are null as absent", async () => {
  await call("CreateQueue", { QueueName: "q", Attributes: null });
  await send("x", { MessageAttributes: null, MessageGroupId: null, DelaySeconds: null });
  await send("y", { MessageAttributes: {} });
  expect(await receive(QueueUrl, at(), { AttributeNames: null })).toMatchObject([
    { Body: "x" },
    { Body: "y" },
  ]);
  expect(await call("GetQueueAttributes", { QueueUrl })).toEqual({});
});

test("rejects an entry without a body, and sends the others", async () => {
  await create("q");
  const answer = await call("SendMessageBatch", {
    QueueUrl,
    Entries: [{ Id: "a" }, { Id: "b", MessageBody: "x" }],
  });
  expect(answer).toMatchObject({
    Failed: [{ Id: "a", Code: "MissingParameter" }],
    Successful: [{ Id: "b" }],
  });
});

test("refuses an expired handle of a FIFO message, and keeps the message, on a busy machine too", async () => {
  let elapsedMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (elapsedMs += 100));
  await createFifo("q.fifo");
  await send("x", { QueueUrl: fifoUrl, MessageGroupId: "g" });
  const [message] = await receive(fifoUrl);
  const input = { QueueUrl: fifoUrl, ReceiptHandle: message?.ReceiptHandle };
  await expect(call("DeleteMessage", input, at(start + 30_000))).rejects.toThrow(
    "The receipt handle has expired",
  );
  const hiding = call(
    "ChangeMessageVisibility",
    { ...input, VisibilityTimeout: 5 },
    at(start + 30_000),
  );
  await expect(hiding).rejects.toThrow("isn't in flight");
  expect(await receive(fifoUrl, at(start + 30_000))).toHaveLength(1);
});
