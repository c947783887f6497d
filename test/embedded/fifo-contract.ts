import { describe, expect, test } from "vitest";
import {
  bodies,
  type ContractQueues,
  fresh,
  refused,
  type SqsCapabilities,
} from "./queue-contract.ts";

/** The part of the contract about FIFO queues. */
export function describeFifoQueues(queues: ContractQueues, capabilities: SqsCapabilities): void {
  const { create, createFifo, attributesOf, send, sendTo, receive, receiveOne, remove, pass } =
    queues;

  describe("FIFO queues", () => {
    test("a group and a deduplication id are needed", async () => {
      const url = await createFifo();
      expect(await refused(send(url, "x", { MessageDeduplicationId: "d" }))).toBe(
        "MissingParameter",
      );
      expect(await refused(send(url, "x", { MessageGroupId: "g" }))).toBe("InvalidParameterValue");
      const standard = await create();
      expect(await refused(send(standard, "x", { MessageDeduplicationId: "d" }))).toBe(
        "InvalidParameterValue",
      );
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
      if (capabilities.repeatsSequenceNumbers)
        expect(second.SequenceNumber).toBe(first.SequenceNumber);
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
      const explicit = await send(url, "same", {
        MessageGroupId: "g",
        MessageDeduplicationId: fresh(),
      });
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
      await receiveOne(url, { VisibilityTimeout: 5 });
      expect(await receive(url)).toEqual([]);
      await pass(5_000);
      expect((await receiveOne(url)).Body).toBe("1");
    });

    if (capabilities.tracksReceipts) {
      test("a receipt handle that has expired deletes nothing", async () => {
        const url = await createFifo();
        await sendTo(url, "g", "1");
        const first = await receiveOne(url, { VisibilityTimeout: 1 });
        await pass(1_000);
        const second = await receiveOne(url);
        await remove(url, first).catch(() => {}); // refused or without effect
        expect(await attributesOf(url)).toMatchObject({
          ApproximateNumberOfMessagesNotVisible: "1",
        });
        await remove(url, second);
        expect(await attributesOf(url)).toMatchObject({
          ApproximateNumberOfMessagesNotVisible: "0",
        });
      });
    }
  });
}
