import { describe, expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { bodies, type ContractQueues, refused, type SqsCapabilities } from "./queue-contract.ts";

/** The part of the contract about single messages. */
export function describeMessages(queues: ContractQueues, capabilities: SqsCapabilities): void {
  const { create, attributesOf, send, receive, receiveOne, remove, hide, pass } = queues;

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
      expect(Math.abs(Date.now() - Number(message.Attributes?.["SentTimestamp"]))).toBeLessThan(
        60_000,
      );
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
      const plain = {
        MessageAttributeNames: [],
        MessageSystemAttributeNames: [],
        VisibilityTimeout: 0,
      };
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
      await pass(2_000);
      expect(await receive(url)).toEqual([]);
    });

    test("a message in flight is nobody else's until its time is over, and then it counts anew", async () => {
      const url = await create();
      await send(url, "x");
      const first = await receiveOne(url, { VisibilityTimeout: 5 });
      expect(await receive(url)).toEqual([]);
      await pass(5_000);
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
      const again = await receiveOne(url, { VisibilityTimeout: 5 });
      await hide(url, again, 60);
      await pass(6_000);
      expect(await receive(url)).toEqual([]);
      await remove(url, again);
    });

    test("a message that is sent with a delay comes later", async () => {
      const url = await create();
      await send(url, "late", { DelaySeconds: 5 });
      await send(url, "now");
      expect(await attributesOf(url)).toMatchObject({ ApproximateNumberOfMessagesDelayed: "1" });
      expect(bodies(await receive(url))).toEqual(["now"]);
      expect((await receiveOne(url, { WaitTimeSeconds: 20 })).Body).toBe("late");
    });

    test("what waits and what is in flight is counted", async () => {
      const url = await create();
      await send(url, "1");
      await send(url, "2");
      await receiveOne(url);
      await waitFor(async () =>
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
        expect(["MessageNotInflight", "ReceiptHandleIsInvalid"]).toContain(
          await refused(hide(url, message, 10)),
        );
        expect((await receiveOne(url)).Body).toBe("x");
      });
    }

    test("empty and oversized messages are refused", async () => {
      const url = await create({ MaximumMessageSize: "262144" });
      expect(await refused(send(url, ""))).toBe("MissingParameter");
      expect(await refused(send(url, "x".repeat(262_145)))).toBe("InvalidParameterValue");
      expect(await refused(send(url, "x".repeat(262_144)))).toBe("taken");
      // Without the attribute, a queue takes what SQS takes.
      const large = await create();
      expect(await refused(send(large, "x".repeat(1_048_577)))).toBe("InvalidParameterValue");
      expect(await refused(send(large, "x".repeat(1_048_576)))).toBe("taken");
      for (const unfit of ["\u0000", "\uFFFE", "a\uFFFF"]) {
        expect(await refused(send(url, unfit))).toBe("InvalidMessageContents");
      }
    });

    test("numbers out of their bounds are refused", async () => {
      const url = await create();
      expect(await refused(receive(url, { MaxNumberOfMessages: 11 }))).toBe(
        "InvalidParameterValue",
      );
      expect(await refused(receive(url, { WaitTimeSeconds: 21 }))).toBe("InvalidParameterValue");
      if (capabilities.checksInput) {
        expect(await refused(receive(url, { VisibilityTimeout: 43_201 }))).toBe(
          "InvalidParameterValue",
        );
      }
    });
  });
}
