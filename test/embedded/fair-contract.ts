import {
  DeleteMessageBatchCommand,
  type Message,
  SendMessageBatchCommand,
} from "@aws-sdk/client-sqs";
import { describe, expect, test } from "vitest";
import { bodies, type ContractQueues, refused, type SqsCapabilities } from "./queue-contract.ts";

/** The part of the contract about message groups of standard queues. */
export function describeFairQueues(queues: ContractQueues, capabilities: SqsCapabilities): void {
  const { create, client, send, receive, receiveOne, hide } = queues;

  const sendAll = async (QueueUrl: string, MessageGroupId: string, count: number) => {
    for (let at = 0; at < count; at += 10) {
      const Entries = Array.from({ length: Math.min(10, count - at) }, (_, index) => ({
        Id: `${index}`,
        MessageBody: `${MessageGroupId} ${at + index}`,
        MessageGroupId,
      }));
      const { Failed = [] } = await client().send(
        new SendMessageBatchCommand({ QueueUrl, Entries }),
      );
      if (Failed.length > 0) throw new Error(JSON.stringify(Failed));
    }
  };
  const removeAll = (QueueUrl: string, messages: readonly Message[]) =>
    client().send(
      new DeleteMessageBatchCommand({
        QueueUrl,
        Entries: messages.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle })),
      }),
    );

  /**
   * Four workers take ten messages each, and delete them before they take more. Returns after how
   * many rounds each message of nine tenants came, in ascending order.
   */
  const waitsBeside = async (backlog: number): Promise<readonly number[]> => {
    const url = await create();
    await sendAll(url, "loud", backlog);
    const waits: number[] = [];
    for (let round = -1; waits.length < 90; round += 1) {
      const batches: Message[][] = [];
      for (let worker = 0; worker < 4; worker += 1) batches.push(await receive(url));
      // The nine start while the backlog is in progress.
      if (round === -1)
        for (let tenant = 0; tenant < 9; tenant += 1) await sendAll(url, `tenant-${tenant}`, 10);
      for (const batch of batches.filter(({ length }) => length > 0)) {
        await removeAll(url, batch);
        for (const { Attributes } of batch)
          if (Attributes?.["MessageGroupId"]?.startsWith("tenant-") === true) waits.push(round + 1);
      }
    }
    return waits.toSorted((one, other) => one - other);
  };
  const p95 = (waits: readonly number[]) => waits[Math.ceil(waits.length * 0.95) - 1] ?? 0;

  describe("message groups of standard queues", () => {
    test("a message comes with its group, and one without a group has no group", async () => {
      const url = await create();
      await send(url, "grouped", { MessageGroupId: "acme-1.0:/@+=" });
      expect((await receiveOne(url)).Attributes).toMatchObject({ MessageGroupId: "acme-1.0:/@+=" });
      await send(url, "alone");
      expect((await receiveOne(url)).Attributes?.["MessageGroupId"]).toBeUndefined();
    });

    test("a message in flight holds back none of its group, nor does one that was handed back", async () => {
      const url = await create();
      await sendAll(url, "acme", 3);
      const first = await receiveOne(url);
      await hide(url, first, 20);
      expect(bodies(await receive(url)).sort()).toEqual(["acme 1", "acme 2"]);
    });

    test.each([
      ["a blank", "a b"],
      ["another script", "täñant"],
      ["129 characters", "x".repeat(129)],
    ])("a group with %s is refused", async (_what, MessageGroupId) => {
      expect(await refused(send(await create(), "x", { MessageGroupId }))).toBe(
        "InvalidParameterValue",
      );
    });

    test("nine tenants get all their messages while another floods the queue", async () => {
      expect(await waitsBeside(200)).toHaveLength(90);
    });

    if (capabilities.isFair) {
      test("nine tenants behind a backlog of 10,000 wait at most twice as long as without it", async () => {
        const alone = p95(await waitsBeside(0));
        expect(alone).toBeGreaterThan(0);
        expect(p95(await waitsBeside(10_000))).toBeLessThanOrEqual(2 * alone);
      });
    }
  });
}
