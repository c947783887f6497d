import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
} from "@aws-sdk/client-sqs";
import { describe, expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import {
  bodies,
  type ContractQueues,
  fresh,
  refused,
  type SqsCapabilities,
} from "./queue-contract.ts";

/** The part of the contract about batches of messages. */
export function describeBatches(queues: ContractQueues, capabilities: SqsCapabilities): void {
  const { client, create, createFifo, attributesOf, receive } = queues;

  describe("batches", () => {
    const batch = (QueueUrl: string, Entries: SendMessageBatchRequestEntry[]) =>
      client().send(new SendMessageBatchCommand({ QueueUrl, Entries }));

    test("ten messages are sent, received, hidden and deleted at once", async () => {
      const QueueUrl = await create();
      const entries = Array.from({ length: 10 }, (_, index) => ({
        Id: `e${index}`,
        MessageBody: `b${index}`,
      }));
      const sent = await batch(QueueUrl, entries);
      expect(sent.Successful?.map(({ Id }) => Id)).toEqual(entries.map(({ Id }) => Id));
      const messages: Message[] = [];
      await waitFor(async () => {
        messages.push(...(await receive(QueueUrl)));
        expect(bodies(messages).sort()).toEqual(entries.map(({ MessageBody }) => MessageBody));
      });
      const handles = messages.map(({ ReceiptHandle }, index) => ({
        Id: `r${index}`,
        ReceiptHandle,
      }));
      const hidden = await client().send(
        new ChangeMessageVisibilityBatchCommand({
          QueueUrl,
          Entries: handles.map((entry) => ({ ...entry, VisibilityTimeout: 60 })),
        }),
      );
      expect(hidden.Successful).toHaveLength(10);
      const deleted = await client().send(
        new DeleteMessageBatchCommand({
          QueueUrl,
          Entries: [...handles.slice(0, 9), { Id: "x", ReceiptHandle: "junk" }],
        }),
      );
      expect(deleted.Successful).toHaveLength(9);
      expect(deleted.Failed).toMatchObject([{ Id: "x", Code: "ReceiptHandleIsInvalid" }]);
      expect(await attributesOf(QueueUrl)).toMatchObject({
        ApproximateNumberOfMessagesNotVisible: "1",
      });
    });

    if (capabilities.answersBatchesPartly) {
      test("a wrong message does not keep the others from being sent", async () => {
        const url = await createFifo();
        const answer = await batch(url, [
          { Id: "good", MessageBody: "x", MessageGroupId: "g", MessageDeduplicationId: fresh() },
          { Id: "bad", MessageBody: "y", MessageGroupId: "g" },
        ]);
        expect(answer.Successful?.map(({ Id }) => Id)).toEqual(["good"]);
        expect(answer.Failed).toMatchObject([
          { Id: "bad", Code: "InvalidParameterValue", SenderFault: true },
        ]);
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
        const half = "x".repeat(524_289);
        expect(await refused(batch(url, [entry("a", half), entry("b", half)]))).toBe(
          "BatchRequestTooLong",
        );
      }
    });
  });
}
