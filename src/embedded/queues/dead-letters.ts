import { randomUUID } from "node:crypto";
import type { CallContext, Input } from "../service/service.ts";
import type { QueueMessage } from "./queue.ts";
import type { StoredQueue } from "./queue-store.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";
import { optionalText, requiredText } from "./sqs-input.ts";
import { arnOf, queueByArn, queueOf, type SqsScope, urlOf } from "./sqs-scope.ts";

/** Moves messages that were received too often. They keep their IDs. */
export function moveDeadLetters(
  scope: SqsScope,
  {
    dead,
    from,
    to,
  }: {
    readonly dead: readonly QueueMessage[];
    readonly from: StoredQueue;
    readonly to: StoredQueue;
  },
  now: number,
): void {
  for (const message of dead) {
    // As in SQS: the retention period restarts in a FIFO queue only.
    const sentAt = to.settings.fifo ? now : message.sentAt;
    to.messages.accept({ ...message, sentAt, deadLetterSource: arnOf(scope, from) }, now);
  }
  if (dead.length > 0) scope.polls.wake(to.name);
}

/**
 * Moves the visible messages to one queue, or to their sources, before it returns. They get new
 * IDs.
 */
export function startMessageMoveTask(
  scope: SqsScope,
  input: Input,
  { nowMs }: CallContext,
): object {
  const sourceArn = requiredText(input, "SourceArn");
  const destinationArn = optionalText(input, "DestinationArn");
  const source = queueOfArn(scope, sourceArn, "SourceArn");
  const destination =
    destinationArn === undefined ? undefined : queueOfArn(scope, destinationArn, "DestinationArn");
  if (sourcesOf(scope, source).length === 0) {
    throw invalidParameter(
      "SourceArn",
      sourceArn,
      "Source queue must be configured as a Dead Letter Queue.",
    );
  }
  const moves: { readonly message: QueueMessage; readonly target: StoredQueue }[] = [];
  source.messages.remove((message) => {
    const target = destination ?? queueByArn(scope, message.deadLetterSource ?? "");
    if (target === undefined || message.visibleAt > nowMs) return false;
    moves.push({ message, target });
    return true;
  });
  for (const { message, target } of moves) {
    const { deadLetterSource: _deadLetterSource, ...plain } = message;
    target.messages.accept({ ...plain, id: randomUUID(), sentAt: nowMs }, nowMs);
    scope.polls.wake(target.name);
  }
  return { TaskHandle: Buffer.from(`${randomUUID()}:${sourceArn}`).toString("base64url") };
}

export function listDeadLetterSourceQueues(
  scope: SqsScope,
  input: Input,
  context: CallContext,
): object {
  return {
    queueUrls: sourcesOf(scope, queueOf(scope, input)).map((queue) => urlOf(context, queue)),
  };
}

function queueOfArn(scope: SqsScope, arn: string, member: string): StoredQueue {
  const queue = queueByArn(scope, arn);
  if (queue !== undefined) return queue;
  throw new SqsError(
    "ResourceNotFoundException",
    `The resource that you specified for the ${member} parameter doesn't exist.`,
  );
}

function sourcesOf({ store }: SqsScope, { name }: StoredQueue): readonly StoredQueue[] {
  return store
    .all()
    .filter(({ settings }) => settings.redrive?.deadLetterTargetArn.endsWith(`:${name}`));
}
