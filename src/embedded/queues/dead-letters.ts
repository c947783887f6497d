import { randomUUID } from "node:crypto";
import type { Operations } from "../service/service.ts";
import type { QueueMessage } from "./queue.ts";
import type { StoredQueue } from "./queue-store.ts";
import { invalidParameter, optionalText, requiredText, SqsError } from "./sqs-input.ts";
import { arnOf, queueByArn, queueOf, type SqsScope, urlOf } from "./sqs-scope.ts";

/** Messages that were received too often keep their IDs. */
export function moveDeadLetters(
  scope: SqsScope,
  dead: readonly QueueMessage[],
  { from, to }: { readonly from: StoredQueue; to: StoredQueue },
  now: number,
) {
  for (const message of dead) {
    // In SQS, the retention period of a moved message restarts in a FIFO queue only.
    const sentAt = to.settings.fifo ? now : message.sentAt;
    to.messages.accept({ ...message, sentAt, deadLetterSource: arnOf(scope, from) }, now);
  }
  if (dead.length > 0) scope.polls.wake(to.name);
}

export const deadLetterOperations: Operations<SqsScope> = {
  /** Moves visible messages, with new IDs, to one queue or back to their sources. */
  StartMessageMoveTask(scope, input, { nowMs }) {
    const sourceArn = requiredText(input, "SourceArn");
    const wanted = optionalText(input, "DestinationArn");
    const source = queueOfArn(scope, sourceArn, "SourceArn");
    const destination = wanted === undefined ? wanted : queueOfArn(scope, wanted, "DestinationArn");
    if (sourcesOf(scope, source).length === 0) {
      const reason = "Source queue must be configured as a Dead Letter Queue.";
      throw invalidParameter("SourceArn", sourceArn, reason);
    }
    const targetOf = ({ deadLetterSource = "" }: QueueMessage) =>
      destination ?? queueByArn(scope, deadLetterSource);
    const moved = source.messages.remove(
      (message) => message.visibleAt <= nowMs && targetOf(message) !== undefined,
    );
    for (const message of moved) {
      const { deadLetterSource: _deadLetterSource, ...plain } = message;
      const target = targetOf(message) as StoredQueue; // every moved message has a target
      target.messages.accept({ ...plain, id: randomUUID(), sentAt: nowMs }, nowMs);
      scope.polls.wake(target.name);
    }
    return { TaskHandle: Buffer.from(`${randomUUID()}:${sourceArn}`).toString("base64url") };
  },
  ListDeadLetterSourceQueues: (scope, input, context) => ({
    queueUrls: sourcesOf(scope, queueOf(scope, input)).map((queue) => urlOf(context, queue)),
  }),
};

function queueOfArn(scope: SqsScope, arn: string, member: string) {
  const queue = queueByArn(scope, arn);
  if (queue !== undefined) return queue;
  throw new SqsError(
    "ResourceNotFoundException",
    `The resource that you specified for the ${member} parameter doesn't exist.`,
  );
}

function sourcesOf({ store }: SqsScope, { name }: StoredQueue) {
  return store
    .all()
    .filter(({ settings }) => settings.redrive?.deadLetterTargetArn.endsWith(`:${name}`));
}
