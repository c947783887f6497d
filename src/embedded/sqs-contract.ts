import { randomBytes } from "node:crypto";
import {
  ChangeMessageVisibilityBatchCommand,
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListDeadLetterSourceQueuesCommand,
  ListQueuesCommand,
  type Message,
  PurgeQueueCommand,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  SendMessageCommand,
  type SendMessageCommandInput,
  SetQueueAttributesCommand,
  type SQSClient,
  StartMessageMoveTaskCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

/** One connection to the SQS under test. */
export interface SqsConnection {
  readonly client: SQSClient;
  close(): Promise<void>;
}

/** Where implementations are known to differ. */
export interface SqsCapabilities {
  /** A visibility timeout above 12 hours, a dead-letter queue that is not there, and a batch that is too long are refused. */
  readonly checksInput: boolean;
  /** What a redrive or a move leaves behind: the source of a dead letter, new ids of messages moved back. */
  readonly tracksDeadLetters: boolean;
  /** The receipt handle of an earlier receive has no effect, and a message that is visible has no visibility to change. */
  readonly tracksReceipts: boolean;
  /** A wrong entry of a batch does not keep the others from being sent. */
  readonly answersBatchesPartly: boolean;
  /** A duplicate is answered with the sequence number of the first. */
  readonly repeatsSequenceNumbers: boolean;
}

/** What SQS does and no emulator shows, so that no test against one can cover it. */
export const notShownByEmulators: readonly string[] = Object.freeze([
  "permissions: AccessDenied never comes, and the Policy of a queue holds nobody off",
  "standard queues: a message is never received twice without cause, and seldom out of order",
  "eventual consistency: counts are exact at once, and a short poll asks all of the queue",
  "limits of time: a queue can be purged twice within 60 seconds and created anew right after it was deleted",
  "limits of number: OverLimit for 120,000 messages in flight, throttling of FIFO queues",
  "encryption by KMS: its errors never come",
]);

/** Describes what keelson relies on SQS for, as tests with the real AWS SDK. */
export function describeSqsContract(name: string, connect: () => Promise<SqsConnection>, capabilities: SqsCapabilities): void {
  describe(`${name} as SQS`, () => {
    let connection: SqsConnection;
    const base = `contract-${fresh()}`;
    const created: string[] = [];
    const client = () => connection.client;

    const createNamed = async (QueueName: string, Attributes: Record<string, string> = {}) => {
      const { QueueUrl = "" } = await client().send(new CreateQueueCommand({ QueueName, Attributes }));
      created.push(QueueUrl);
      return QueueUrl;
    };
    const create = (Attributes: Record<string, string> = {}) => createNamed(`${base}-${fresh()}`, Attributes);
    const createFifo = (Attributes: Record<string, string> = {}) =>
      createNamed(`${base}-${fresh()}.fifo`, { FifoQueue: "true", ...Attributes });
    const attributesOf = async (QueueUrl: string) =>
      (await client().send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }))).Attributes ?? {};
    const arnOf = async (QueueUrl: string) => (await attributesOf(QueueUrl))["QueueArn"] ?? "";
    const send = (QueueUrl: string, MessageBody: string, more: Partial<SendMessageCommandInput> = {}) =>
      client().send(new SendMessageCommand({ QueueUrl, MessageBody, ...more }));
    const sendTo = (QueueUrl: string, MessageGroupId: string, body: string) =>
      send(QueueUrl, body, { MessageGroupId, MessageDeduplicationId: fresh() });
    const receive = async (QueueUrl: string, more: Partial<ReceiveMessageCommandInput> = {}) => {
      const answer = await client().send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"],
          ...more,
        }),
      );
      return answer.Messages ?? [];
    };
    const receiveOne = async (QueueUrl: string, more: Partial<ReceiveMessageCommandInput> = {}): Promise<Message> => {
      const [message] = await receive(QueueUrl, { MaxNumberOfMessages: 1, WaitTimeSeconds: 10, ...more });
      if (message === undefined) throw new Error("Nothing was received within 10 seconds");
      return message;
    };
    const remove = (QueueUrl: string, { ReceiptHandle }: Message) =>
      client().send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    const hide = (QueueUrl: string, { ReceiptHandle }: Message, VisibilityTimeout: number) =>
      client().send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }));
    const bodies = (messages: readonly Message[]) => messages.map(({ Body }) => Body);
    const refused = (call: Promise<unknown>) =>
      call.then(
        () => "taken",
        (error: Error) => error.name,
      );

    beforeAll(async () => {
      connection = await connect();
    });
    afterAll(async () => {
      for (const QueueUrl of created)
        await client()
          .send(new DeleteQueueCommand({ QueueUrl }))
          .catch(() => {}); // some are gone
      await connection.close();
    });

    describe("queues", () => {
      test("a queue is found by its name, its prefix and its address", async () => {
        const QueueName = `${base}-${fresh()}`;
        const QueueUrl = await createNamed(QueueName, { VisibilityTimeout: "7" });
        expect((await client().send(new GetQueueUrlCommand({ QueueName }))).QueueUrl).toBe(QueueUrl);
        expect((await client().send(new ListQueuesCommand({ QueueNamePrefix: QueueName }))).QueueUrls).toEqual([QueueUrl]);
        expect(await attributesOf(QueueUrl)).toMatchObject({
          QueueArn: expect.stringMatching(`^arn:aws:sqs:us-east-1:000000000000:${QueueName}$`),
          VisibilityTimeout: "7",
          DelaySeconds: "0",
          MessageRetentionPeriod: "345600",
          ReceiveMessageWaitTimeSeconds: "0",
          ApproximateNumberOfMessages: "0",
          ApproximateNumberOfMessagesNotVisible: "0",
          ApproximateNumberOfMessagesDelayed: "0",
        });
        const some = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["VisibilityTimeout"] });
        expect((await client().send(some)).Attributes).toEqual({ VisibilityTimeout: "7" });
      });

      test("created again with equal attributes it is the same, with others it is refused", async () => {
        const QueueName = `${base}-${fresh()}`;
        const url = await createNamed(QueueName, { VisibilityTimeout: "7" });
        await send(url, "kept");
        expect(await createNamed(QueueName, { VisibilityTimeout: "7" })).toBe(url);
        expect(await createNamed(QueueName)).toBe(url);
        expect(await refused(createNamed(QueueName, { VisibilityTimeout: "8" }))).toBe("QueueNameExists");
        expect(bodies(await receive(url))).toEqual(["kept"]);
      });

      test("attributes can be changed", async () => {
        const QueueUrl = await create();
        await client().send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout: "9" } }));
        expect(await attributesOf(QueueUrl)).toMatchObject({ VisibilityTimeout: "9", DelaySeconds: "0" });
      });

      test("a FIFO queue is one by its name and its attribute", async () => {
        expect(await attributesOf(await createFifo())).toMatchObject({ FifoQueue: "true", ContentBasedDeduplication: "false" });
        expect(await refused(createNamed(`${base}-${fresh()}.fifo`))).toBe("InvalidParameterValue");
        expect(await refused(createNamed(`${base}-${fresh()}`, { FifoQueue: "true" }))).toBe("InvalidParameterValue");
      });

      test("a queue that is not there, or no more, is an error of the SDK's own class", async () => {
        const QueueUrl = await create();
        await client().send(new DeleteQueueCommand({ QueueUrl }));
        const looking = client().send(new GetQueueUrlCommand({ QueueName: `${base}-none` }));
        await expect(looking).rejects.toBeInstanceOf(QueueDoesNotExist);
        expect(await refused(send(QueueUrl, "x"))).toBe("QueueDoesNotExist");
        expect(await refused(receive(QueueUrl))).toBe("QueueDoesNotExist");
        expect(await refused(attributesOf(QueueUrl))).toBe("QueueDoesNotExist");
      });

      test("a queue that is purged has no messages", async () => {
        const QueueUrl = await create();
        await send(QueueUrl, "x");
        await client().send(new PurgeQueueCommand({ QueueUrl }));
        expect(await receive(QueueUrl)).toEqual([]);
      });

      test("wrong names and attributes are refused", async () => {
        expect(await refused(createNamed("a b"))).toBe("InvalidParameterValue");
        expect(await refused(create({ Nonsense: "1" }))).toBe("InvalidAttributeName");
      });
    });

    describe("messages", () => {
      test("a message comes with its body, attributes and digests, which the SDK compares", async () => {
        const url = await create();
        const MessageAttributes = {
          text: { DataType: "String", StringValue: "tätä" },
          count: { DataType: "Number", StringValue: "12.5" },
          bytes: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255, 7]) },
          kind: { DataType: "String.custom", StringValue: "c" },
        };
        const body = 'tätä "\u{1F600}"\n\t{}';
        const sent = await send(url, body, { MessageAttributes });
        const message = await receiveOne(url);
        expect(message).toMatchObject({
          MessageId: sent.MessageId,
          Body: body,
          MD5OfBody: sent.MD5OfMessageBody,
          MessageAttributes,
        });
        expect(sent.MD5OfMessageAttributes).toMatch(/^[0-9a-f]{32}$/);
        expect(message.MD5OfMessageAttributes).toBe(sent.MD5OfMessageAttributes);
        expect(message.Attributes).toMatchObject({ ApproximateReceiveCount: "1" });
        expect(Math.abs(Date.now() - Number(message.Attributes?.["SentTimestamp"]))).toBeLessThan(60_000);
        expect(Number(message.Attributes?.["ApproximateFirstReceiveTimestamp"])).toBeGreaterThan(0);
      });

      test("the digest of attributes is that of SQS", async () => {
        const MessageAttributes = {
          b: { DataType: "Binary", BinaryValue: new Uint8Array([1, 2]) },
          a: { DataType: "String", StringValue: "v" },
        };
        const sent = await send(await create(), "x", { MessageAttributes });
        expect(sent.MD5OfMessageAttributes).toBe("35bbfe343ea0990c2dcb69f287640254");
      });

      test("attributes come only where they are asked for", async () => {
        const url = await create();
        await send(url, "x", {
          MessageAttributes: {
            "trace.id": { DataType: "String", StringValue: "1" },
            other: { DataType: "String", StringValue: "2" },
          },
        });
        const plain = { MessageAttributeNames: [], MessageSystemAttributeNames: [], VisibilityTimeout: 0 };
        const none = await receiveOne(url, plain);
        expect([none.MessageAttributes, none.Attributes]).toEqual([undefined, undefined]);
        const some = await receiveOne(url, {
          ...plain,
          MessageAttributeNames: ["trace.*"],
          MessageSystemAttributeNames: ["ApproximateReceiveCount"],
        });
        expect(Object.keys(some.MessageAttributes ?? {})).toEqual(["trace.id"]);
        expect(some.Attributes).toEqual({ ApproximateReceiveCount: "2" });
      });

      test("a message that was deleted does not come back", async () => {
        const url = await create({ VisibilityTimeout: "1" });
        await send(url, "x");
        const message = await receiveOne(url);
        await remove(url, message);
        await remove(url, message);
        expect(await receive(url, { WaitTimeSeconds: 2 })).toEqual([]);
      });

      test("a message in flight is nobody else's until its time is over, and then it counts anew", async () => {
        const url = await create();
        await send(url, "x");
        const first = await receiveOne(url, { VisibilityTimeout: 1 });
        expect(await receive(url)).toEqual([]);
        const second = await receiveOne(url, { VisibilityTimeout: 30 });
        expect(second.MessageId).toBe(first.MessageId);
        expect(second.Attributes).toMatchObject({
          ApproximateReceiveCount: "2",
          ApproximateFirstReceiveTimestamp: first.Attributes?.["ApproximateFirstReceiveTimestamp"],
        });
        expect(second.ReceiptHandle).not.toBe(first.ReceiptHandle);
        await remove(url, second);
        expect(await attributesOf(url)).toMatchObject({ ApproximateNumberOfMessagesNotVisible: "0" });
      });

      test("the time of a message in flight can be shortened and made longer", async () => {
        const url = await create();
        await send(url, "x");
        await hide(url, await receiveOne(url), 0);
        const again = await receiveOne(url, { VisibilityTimeout: 1 });
        await hide(url, again, 60);
        expect(await receive(url, { WaitTimeSeconds: 2 })).toEqual([]);
        await remove(url, again);
      });

      test("a message that is sent with a delay comes later", async () => {
        const url = await create();
        await send(url, "late", { DelaySeconds: 1 });
        await send(url, "now");
        expect(await attributesOf(url)).toMatchObject({ ApproximateNumberOfMessagesDelayed: "1" });
        expect(bodies(await receive(url))).toEqual(["now"]);
        expect((await receiveOne(url)).Body).toBe("late");
      });

      test("what waits and what is in flight is counted", async () => {
        const url = await create();
        await send(url, "1");
        await send(url, "2");
        await receiveOne(url);
        await vi.waitFor(async () =>
          expect(await attributesOf(url)).toMatchObject({
            ApproximateNumberOfMessages: "1",
            ApproximateNumberOfMessagesNotVisible: "1",
          }),
        );
      });

      test("a long poll ends when a message comes", async () => {
        const url = await create();
        const started = performance.now();
        const waiting = receive(url, { WaitTimeSeconds: 20 });
        await send(url, "x");
        expect(bodies(await waiting)).toEqual(["x"]);
        expect(performance.now() - started).toBeLessThan(10_000);
      });

      test("what is no receipt handle is refused", async () => {
        const url = await create();
        expect(await refused(remove(url, { ReceiptHandle: "junk" }))).toBe("ReceiptHandleIsInvalid");
        expect(await refused(hide(url, { ReceiptHandle: "junk" }, 1))).toBe("ReceiptHandleIsInvalid");
      });

      if (capabilities.tracksReceipts) {
        test("the visibility of a message that is not in flight cannot be changed", async () => {
          const url = await create();
          await send(url, "x");
          const message = await receiveOne(url);
          await hide(url, message, 0);
          expect(["MessageNotInflight", "ReceiptHandleIsInvalid"]).toContain(await refused(hide(url, message, 10)));
          expect((await receiveOne(url)).Body).toBe("x");
        });
      }

      test("empty and oversized messages are refused", async () => {
        const url = await create({ MaximumMessageSize: "262144" });
        expect(await refused(send(url, ""))).toBe("MissingParameter");
        expect(await refused(send(url, "x".repeat(262_145)))).toBe("InvalidParameterValue");
        expect(await refused(send(url, "x".repeat(262_144)))).toBe("taken");
        expect(await refused(send(url, "\u0000"))).toBe("InvalidMessageContents");
      });

      test("numbers out of their bounds are refused", async () => {
        const url = await create();
        expect(await refused(receive(url, { MaxNumberOfMessages: 11 }))).toBe("InvalidParameterValue");
        expect(await refused(receive(url, { WaitTimeSeconds: 21 }))).toBe("InvalidParameterValue");
        if (capabilities.checksInput) {
          expect(await refused(receive(url, { VisibilityTimeout: 43_201 }))).toBe("InvalidParameterValue");
        }
      });
    });

    describe("batches", () => {
      const batch = (QueueUrl: string, Entries: SendMessageBatchRequestEntry[]) =>
        client().send(new SendMessageBatchCommand({ QueueUrl, Entries }));

      test("ten messages are sent, received, hidden and deleted at once", async () => {
        const QueueUrl = await create();
        const entries = Array.from({ length: 10 }, (_, index) => ({ Id: `e${index}`, MessageBody: `b${index}` }));
        const sent = await batch(QueueUrl, entries);
        expect(sent.Successful?.map(({ Id }) => Id)).toEqual(entries.map(({ Id }) => Id));
        const messages: Message[] = [];
        await vi.waitFor(async () => {
          messages.push(...(await receive(QueueUrl)));
          expect(bodies(messages).sort()).toEqual(entries.map(({ MessageBody }) => MessageBody));
        });
        const handles = messages.map(({ ReceiptHandle }, index) => ({ Id: `r${index}`, ReceiptHandle }));
        const hidden = await client().send(
          new ChangeMessageVisibilityBatchCommand({
            QueueUrl,
            Entries: handles.map((entry) => ({ ...entry, VisibilityTimeout: 60 })),
          }),
        );
        expect(hidden.Successful).toHaveLength(10);
        const deleted = await client().send(
          new DeleteMessageBatchCommand({ QueueUrl, Entries: [...handles.slice(0, 9), { Id: "x", ReceiptHandle: "junk" }] }),
        );
        expect(deleted.Successful).toHaveLength(9);
        expect(deleted.Failed).toMatchObject([{ Id: "x", Code: "ReceiptHandleIsInvalid" }]);
        expect(await attributesOf(QueueUrl)).toMatchObject({ ApproximateNumberOfMessagesNotVisible: "1" });
      });

      if (capabilities.answersBatchesPartly) {
        test("a wrong message does not keep the others from being sent", async () => {
          const url = await createFifo();
          const answer = await batch(url, [
            { Id: "good", MessageBody: "x", MessageGroupId: "g", MessageDeduplicationId: fresh() },
            { Id: "bad", MessageBody: "y", MessageGroupId: "g" },
          ]);
          expect(answer.Successful?.map(({ Id }) => Id)).toEqual(["good"]);
          expect(answer.Failed).toMatchObject([{ Id: "bad", Code: "InvalidParameterValue", SenderFault: true }]);
        });
      }

      test("empty, oversized and ambiguous batches are refused", async () => {
        const url = await create();
        const entry = (Id: string, MessageBody = "x") => ({ Id, MessageBody });
        expect(await refused(batch(url, []))).toBe("EmptyBatchRequest");
        const eleven = Array.from({ length: 11 }, (_, index) => entry(`e${index}`));
        expect(await refused(batch(url, eleven))).toBe("TooManyEntriesInBatchRequest");
        expect(await refused(batch(url, [entry("a"), entry("a")]))).toBe("BatchEntryIdsNotDistinct");
        expect(await refused(batch(url, [entry("a b")]))).toBe("InvalidBatchEntryId");
        if (capabilities.checksInput) {
          const half = "x".repeat(131_073);
          expect(await refused(batch(url, [entry("a", half), entry("b", half)]))).toBe("BatchRequestTooLong");
        }
      });
    });

    describe("FIFO queues", () => {
      test("a group and a deduplication id are needed", async () => {
        const url = await createFifo();
        expect(await refused(send(url, "x", { MessageDeduplicationId: "d" }))).toBe("MissingParameter");
        expect(await refused(send(url, "x", { MessageGroupId: "g" }))).toBe("InvalidParameterValue");
        const standard = await create();
        expect(await refused(send(standard, "x", { MessageDeduplicationId: "d" }))).toBe("InvalidParameterValue");
      });

      test("a duplicate is answered as the first one and adds nothing, even when that one is gone", async () => {
        const url = await createFifo();
        const twice = { MessageGroupId: "g", MessageDeduplicationId: fresh() };
        const first = await send(url, "x", twice);
        const message = await receiveOne(url);
        expect(message.Attributes).toMatchObject({ ...twice, SequenceNumber: first.SequenceNumber });
        await remove(url, message);
        const second = await send(url, "x", twice);
        expect(second.MessageId).toBe(first.MessageId);
        if (capabilities.repeatsSequenceNumbers) expect(second.SequenceNumber).toBe(first.SequenceNumber);
        expect(await receive(url)).toEqual([]);
        const third = await send(url, "x", { ...twice, MessageDeduplicationId: fresh() });
        expect(third.MessageId).not.toBe(first.MessageId);
        expect(BigInt(third.SequenceNumber ?? 0)).toBeGreaterThan(BigInt(first.SequenceNumber ?? 0));
      });

      test("with content-based deduplication an equal body is a duplicate", async () => {
        const url = await createFifo({ ContentBasedDeduplication: "true" });
        const one = await send(url, "same", { MessageGroupId: "g" });
        const two = await send(url, "same", { MessageGroupId: "g" });
        const three = await send(url, "other", { MessageGroupId: "g" });
        const explicit = await send(url, "same", { MessageGroupId: "g", MessageDeduplicationId: fresh() });
        expect(two.MessageId).toBe(one.MessageId);
        expect(new Set([one.MessageId, three.MessageId, explicit.MessageId]).size).toBe(3);
      });

      test("a group comes in order, several of it in one receive, and no more while one is in flight", async () => {
        const url = await createFifo();
        for (const body of ["a1", "a2", "a3"]) await sendTo(url, "a", body);
        await sendTo(url, "b", "b1");
        const [one, ...more] = await receive(url, { MaxNumberOfMessages: 2 });
        expect(bodies([...(one ? [one] : []), ...more])).toEqual(["a1", "a2"]);
        expect(bodies(await receive(url))).toEqual(["b1"]);
        if (one) await remove(url, one);
        expect(await receive(url)).toEqual([]);
        for (const message of more) await remove(url, message);
        expect(bodies(await receive(url))).toEqual(["a3"]);
      });

      test("a message that was not deleted comes again before those behind it", async () => {
        const url = await createFifo();
        await sendTo(url, "g", "1");
        await sendTo(url, "g", "2");
        await receiveOne(url, { VisibilityTimeout: 1 });
        expect(await receive(url)).toEqual([]);
        expect((await receiveOne(url)).Body).toBe("1");
      });

      if (capabilities.tracksReceipts) {
        test("a receipt handle that has expired deletes nothing", async () => {
          const url = await createFifo();
          await sendTo(url, "g", "1");
          const first = await receiveOne(url, { VisibilityTimeout: 1 });
          const second = await receiveOne(url);
          await remove(url, first).catch(() => {}); // refused or without effect
          expect(await attributesOf(url)).toMatchObject({ ApproximateNumberOfMessagesNotVisible: "1" });
          await remove(url, second);
          expect(await attributesOf(url)).toMatchObject({ ApproximateNumberOfMessagesNotVisible: "0" });
        });
      }
    });

    describe("dead letters", () => {
      const redriveTo = async (url: string, maxReceiveCount: number) => ({
        RedrivePolicy: JSON.stringify({ deadLetterTargetArn: await arnOf(url), maxReceiveCount }),
      });

      test("a message that was received too often goes to the dead-letter queue, and back", async () => {
        const dead = await create();
        const url = await create(await redriveTo(dead, 2));
        const { MessageId } = await send(url, "x", { MessageAttributes: { k: { DataType: "String", StringValue: "v" } } });
        for (const _attempt of [1, 2]) await hide(url, await receiveOne(url), 0);
        expect(await receive(url)).toEqual([]);
        const letter = await receiveOne(dead, { VisibilityTimeout: 1 });
        expect(letter).toMatchObject({ MessageId, Body: "x", MessageAttributes: { k: { StringValue: "v" } } });
        if (capabilities.tracksDeadLetters) {
          expect(letter.Attributes).toMatchObject({ DeadLetterQueueSourceArn: await arnOf(url), ApproximateReceiveCount: "1" });
        }
        const sources = await client().send(new ListDeadLetterSourceQueuesCommand({ QueueUrl: dead }));
        expect(sources.queueUrls).toEqual([url]);

        await vi.waitFor(
          async () => expect(await attributesOf(dead)).toMatchObject({ ApproximateNumberOfMessages: "1" }),
          10_000,
        );
        const SourceArn = await arnOf(dead);
        expect((await client().send(new StartMessageMoveTaskCommand({ SourceArn }))).TaskHandle).toBeTruthy();
        const back = await receiveOne(url);
        expect(back).toMatchObject({ Body: "x", MessageAttributes: { k: { StringValue: "v" } } });
        if (capabilities.tracksDeadLetters) {
          expect(back.MessageId).not.toBe(MessageId);
          expect(back.Attributes).toMatchObject({ ApproximateReceiveCount: "1" });
        }
        expect(await receive(dead)).toEqual([]);
      });

      test("in a FIFO queue the group goes on behind it, and it keeps its group", async () => {
        const dead = await createFifo();
        const url = await createFifo(await redriveTo(dead, 1));
        await sendTo(url, "g", "poison");
        await sendTo(url, "g", "next");
        await hide(url, await receiveOne(url), 0);
        expect((await receiveOne(url)).Body).toBe("next");
        const letter = await receiveOne(dead);
        expect(letter.Body).toBe("poison");
        expect(letter.Attributes).toMatchObject({ MessageGroupId: "g" });
      });

      test("only a dead-letter queue can be moved from", async () => {
        const SourceArn = await arnOf(await create());
        const move = (arn: string) => refused(client().send(new StartMessageMoveTaskCommand({ SourceArn: arn })));
        expect(await move(SourceArn)).toBe("InvalidParameterValue");
        expect(await move(`${SourceArn}-none`)).toBe("ResourceNotFoundException");
      });

      if (capabilities.checksInput) {
        test("a dead-letter queue has to be there, and of the same type", async () => {
          expect(await refused(redriveTo(await createFifo(), 1).then(create))).toBe("InvalidParameterValue");
          const none = JSON.stringify({ deadLetterTargetArn: "arn:aws:sqs:us-east-1:000000000000:none", maxReceiveCount: 1 });
          expect(await refused(create({ RedrivePolicy: none }))).toBe("InvalidParameterValue");
        });
      }
    });
  });
}

function fresh(): string {
  return randomBytes(6).toString("hex");
}
