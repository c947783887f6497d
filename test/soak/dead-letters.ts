import { GetQueueUrlCommand } from "@aws-sdk/client-sqs";
import { openDeadLetters } from "../../src/aws/messaging/dead-letters.ts";
import type { Stored } from "./stored.ts";

/**
 * Sends the dead letters of each queue to it again, as an operator does after an outage: what failed too often is not lost.
 *
 * @returns how many there were.
 */
export async function moveBackDeadLetters(
  { sqs }: Stored,
  queues: readonly string[],
): Promise<number> {
  let moved = 0;
  for (const QueueName of queues) {
    const url = async () =>
      String((await sqs.send(new GetQueueUrlCommand({ QueueName }))).QueueUrl);
    const letters = await openDeadLetters(sqs, { url });
    if (letters === undefined || (await letters.count()) === 0) continue;
    for await (const some of letters.read())
      for (const letter of some) {
        await letters.moveBack(letter);
        moved += 1;
      }
  }
  return moved;
}
