import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { isOrdered, type MessageQueue } from "../../parts/messages/message-queue.ts";
import { untriedText } from "../../parts/messages/waited.ts";
import { queueMessage, reasonAttribute, redriveOf, systemAttributes, urlOf } from "./sqs-queue.ts";

export interface DeadLetter {
  /** The ID that it has in the dead-letter queue. */
  readonly id: string;
  readonly body: string;
  readonly group: string | undefined;
  /** Since when it is in the dead-letter queue, in epoch milliseconds. */
  readonly sentMs: number;
  /** Error of the last attempt; `undefined` if SQS itself moved the message. */
  readonly reason: string | undefined;
  readonly receipt: string;
}

/** Dead letters of one queue. */
export interface DeadLetters {
  /** Counts all letters, including hidden ones. SQS's numbers may be a minute old. */
  count(): Promise<number>;
  /**
   * Yields up to ten letters at a time, and hides each from other readers for {@link hiddenSeconds}, or until
   * `release`. From a group of a FIFO queue, SQS hands out only the first ten until they are deleted.
   */
  read(): AsyncGenerator<readonly DeadLetter[]>;
  /** Makes letters visible again. One that cannot be released becomes visible by itself. */
  release(letters: readonly DeadLetter[]): Promise<void>;
  /**
   * Sends it to its queue, with no attempts so far, then removes it: a crash in between doubles it,
   * which claims notice.
   */
  moveBack(letter: DeadLetter): Promise<void>;
  remove(letter: DeadLetter): Promise<void>;
}

const hiddenSeconds = 60;
const batch = { letters: 10, atOnce: 5 };

/** @returns `undefined` if the queue has no dead-letter queue. @throws Error if a queue is missing. */
export async function openDeadLetters(
  client: SQSClient,
  queue: Pick<MessageQueue, "url">,
): Promise<DeadLetters | undefined> {
  const source = await queue.url();
  const asked = { QueueUrl: source, AttributeNames: ["RedrivePolicy" as const] };
  const { Attributes: found = {} } = await client.send(new GetQueueAttributesCommand(asked));
  const name = redriveOf(found)?.name;
  if (name === undefined) return undefined;
  const QueueUrl = await urlOf({ GetQueueUrlCommand }, client, name);
  const remove = async ({ receipt: ReceiptHandle }: DeadLetter) => {
    await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  };
  return {
    count: async () => {
      const command = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: [...counted] });
      const { Attributes = {} } = await client.send(command);
      return counted.reduce((sum, name) => sum + Number(Attributes[name]), 0);
    },
    read: async function* () {
      const command = new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: batch.letters,
        // A long poll asks all of SQS's servers: a short one misses messages.
        WaitTimeSeconds: 1,
        VisibilityTimeout: hiddenSeconds,
        MessageSystemAttributeNames: [...systemAttributes],
        MessageAttributeNames: [reasonAttribute],
      });
      for (;;) {
        const { Messages = [] } = await client.send(command);
        if (Messages.length === 0) return;
        yield Messages.map(deadLetter);
      }
    },
    release: async (letters) => {
      const batches = batchesOf(letters);
      const next = async (): Promise<void> => {
        for (let some = batches.pop(); some !== undefined; some = batches.pop()) {
          const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: some });
          await client.send(command).catch(() => undefined);
        }
      };
      await Promise.all(Array.from({ length: batch.atOnce }, next));
    },
    moveBack: async (letter) => {
      const { id, body, group } = letter;
      const message = { QueueUrl: source, MessageBody: untriedText(body), MessageGroupId: group };
      const ordered = isOrdered(source) ? { MessageDeduplicationId: `back-${id}` } : {};
      await client.send(new SendMessageCommand({ ...message, ...ordered }));
      await remove(letter);
    },
    remove,
  };
}

const counted = [
  "ApproximateNumberOfMessages",
  "ApproximateNumberOfMessagesNotVisible",
  "ApproximateNumberOfMessagesDelayed",
] as const;

function batchesOf(letters: readonly DeadLetter[]) {
  const entries = letters.map(({ receipt: ReceiptHandle }, index) => {
    return { Id: `${index}`, ReceiptHandle, VisibilityTimeout: 0 };
  });
  const count = Math.ceil(entries.length / batch.letters);
  return Array.from({ length: count }, (_, n) =>
    entries.slice(n * batch.letters, (n + 1) * batch.letters),
  );
}

function deadLetter(message: Message): DeadLetter {
  const { id, body, group, sentMs, receipt } = queueMessage(message);
  const { [reasonAttribute]: reason } = message.MessageAttributes ?? {};
  return { id, body, group, sentMs: Number(sentMs), reason: reason?.StringValue, receipt };
}
