import {
  ListDeadLetterSourceQueuesCommand,
  StartMessageMoveTaskCommand,
} from "@aws-sdk/client-sqs";
import { describe, expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { type ContractQueues, refused, type SqsCapabilities } from "./queue-contract.ts";

/** The part of the contract about dead-letter queues. */
export function describeDeadLetters(queues: ContractQueues, capabilities: SqsCapabilities): void {
  const {
    client,
    create,
    createFifo,
    attributesOf,
    arnOf,
    send,
    sendTo,
    receive,
    receiveOne,
    hide,
    pass,
  } = queues;

  describe("dead letters", () => {
    const redriveTo = async (url: string, maxReceiveCount: number) => ({
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn: await arnOf(url), maxReceiveCount }),
    });

    test("a message that was received too often goes to the dead-letter queue, and back", async () => {
      const dead = await create();
      const url = await create(await redriveTo(dead, 2));
      const { MessageId } = await send(url, "x", {
        MessageAttributes: { k: { DataType: "String", StringValue: "v" } },
      });
      for (const _attempt of [1, 2]) await hide(url, await receiveOne(url), 0);
      expect(await receive(url)).toEqual([]);
      const letter = await receiveOne(dead, { VisibilityTimeout: 1 });
      expect(letter).toMatchObject({
        MessageId,
        Body: "x",
        MessageAttributes: { k: { StringValue: "v" } },
      });
      if (capabilities.tracksDeadLetters) {
        expect(letter.Attributes).toMatchObject({
          DeadLetterQueueSourceArn: await arnOf(url),
          ApproximateReceiveCount: "1",
        });
      }
      const sources = await client().send(
        new ListDeadLetterSourceQueuesCommand({ QueueUrl: dead }),
      );
      expect(sources.queueUrls).toEqual([url]);

      await pass(1_000);
      await waitFor(async () =>
        expect(await attributesOf(dead)).toMatchObject({ ApproximateNumberOfMessages: "1" }),
      );
      const SourceArn = await arnOf(dead);
      expect(
        (await client().send(new StartMessageMoveTaskCommand({ SourceArn }))).TaskHandle,
      ).toBeTruthy();
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
      const move = (arn: string) =>
        refused(client().send(new StartMessageMoveTaskCommand({ SourceArn: arn })));
      expect(await move(SourceArn)).toBe("InvalidParameterValue");
      expect(await move(`${SourceArn}-none`)).toBe("ResourceNotFoundException");
    });

    if (capabilities.checksInput) {
      test("a dead-letter queue has to be there, and of the same type", async () => {
        expect(await refused(redriveTo(await createFifo(), 1).then(create))).toBe(
          "InvalidParameterValue",
        );
        const none = JSON.stringify({
          deadLetterTargetArn: "arn:aws:sqs:us-east-1:000000000000:none",
          maxReceiveCount: 1,
        });
        expect(await refused(create({ RedrivePolicy: none }))).toBe("InvalidParameterValue");
      });
    }
  });
}
