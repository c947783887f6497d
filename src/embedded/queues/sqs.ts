import { randomUUID } from "node:crypto";
import { isRecord } from "../../base/errors/option-table.ts";
import {
  type AwsJsonService,
  type Input,
  type Operations,
  operationOf,
  ServiceError,
} from "../service/service.ts";
import { createLongPolls, endPollsOperation } from "./long-polls.ts";
import { chosen } from "./message-attributes.ts";
import type { QueueMessage } from "./queue.ts";
import {
  checkQueueAttributes,
  effectiveAttributes,
  isSettable,
  type QueueAttributes,
  settingsOf,
  unknownAttribute,
} from "./queue-settings.ts";
import { openQueueStore, type StoredQueue } from "./queue-store.ts";
import { invalidParameter, optionalText, requiredText, SqsError, texts } from "./sqs-input.ts";
import { changeVisibility, deleteMessage, receiveMessage, sendMessage } from "./sqs-messages.ts";
import {
  arnOf,
  existing,
  expire,
  forEach,
  forOne,
  queueByArn,
  queueOf,
  type SqsScope,
  urlOf,
} from "./sqs-scope.ts";

const queueName = /^[\w-]{1,80}$/;
const fifoName = /^(?=.{6,80}$)[\w-]+\.fifo$/;

export type Sqs = ReturnType<typeof openSqs>;

/**
 * A long poll starts at the time of its call, which a test may shift, and measures its wait by the
 * system clock. @throws Error if the file is corrupt.
 */
export function openSqs({
  path,
  region = "us-east-1",
}: {
  path?: string | undefined;
  region?: string;
} = {}) {
  const store = openQueueStore(path);
  const closing = new AbortController();
  const scope: SqsScope = { store, polls: createLongPolls(), region, closing: closing.signal };
  return {
    targetPrefix: "AmazonSQS.",
    async call(name, input, context) {
      const operation = operationOf(operations, name);
      if (closing.signal.aborted)
        throw new ServiceError("ServiceUnavailable", "The embedded stack closes", { status: 503 });
      try {
        return await operation(scope, input, context);
      } finally {
        store.flush();
      }
    },
    close() {
      if (closing.signal.aborted) return;
      store.flush();
      closing.abort();
      store.close();
    },
  } satisfies AwsJsonService & { close(): void };
}

const operations: Operations<SqsScope> = {
  CreateQueue(scope, input, context) {
    const { name, attributes, fifo } = readQueue(input);
    const before = scope.store.get(name);
    if (before === undefined) {
      checkRedrive(scope, attributes, fifo);
      return { QueueUrl: urlOf(context, scope.store.create(name, attributes, context.nowMs)) };
    }
    const current = effectiveAttributes(before.attributes);
    const other = Object.keys(attributes).find((one) => (current[one] ?? "") !== attributes[one]);
    if (other === undefined) return { QueueUrl: urlOf(context, before) };
    throw new SqsError(
      "QueueNameExists",
      `A queue already exists with the same name and a different value for attribute ${other}`,
    );
  },
  GetQueueUrl: ({ store }, input, context) => ({
    QueueUrl: urlOf(context, existing(store.get(requiredText(input, "QueueName")))),
  }),
  GetQueueAttributes(scope, input, { nowMs }) {
    const queue = queueOf(scope, input);
    const wanted = texts(input, "AttributeNames");
    expire(queue, nowMs);
    const { visible, inFlight, delayed } = queue.messages.counts(nowMs);
    const all = {
      ...effectiveAttributes(queue.attributes),
      QueueArn: arnOf(scope, queue),
      ApproximateNumberOfMessages: String(visible),
      ApproximateNumberOfMessagesNotVisible: String(inFlight),
      ApproximateNumberOfMessagesDelayed: String(delayed),
      CreatedTimestamp: String(Math.floor(queue.createdAt / 1000)),
      LastModifiedTimestamp: String(Math.floor(queue.modifiedAt / 1000)),
    };
    const known = { ...all, All: "" };
    const unknown = wanted.find((name) => !isSettable(name) && !Object.hasOwn(known, name));
    if (unknown !== undefined) throw unknownAttribute(unknown);
    return { Attributes: chosen(all, wanted) };
  },
  SetQueueAttributes(scope, input, { nowMs }) {
    const queue = queueOf(scope, input);
    const { fifo } = queue.settings;
    const attributes = checkQueueAttributes(input["Attributes"], fifo);
    checkRedrive(scope, attributes, fifo);
    scope.store.configure(queue, { ...queue.attributes, ...attributes }, nowMs);
    scope.polls.wake(queue.name);
    return {};
  },
  ListQueues({ store }, input, context) {
    const prefix = optionalText(input, "QueueNamePrefix") ?? "";
    const found = store.all().filter(({ name }) => name.startsWith(prefix));
    return found.length === 0 ? {} : { QueueUrls: found.map((queue) => urlOf(context, queue)) };
  },
  DeleteQueue(scope, input) {
    const queue = queueOf(scope, input);
    scope.store.delete(queue);
    scope.polls.wake(queue.name);
    return {};
  },
  PurgeQueue(scope, input) {
    queueOf(scope, input).messages.remove(() => true);
    return {};
  },
  SendMessage: forOne(sendMessage),
  SendMessageBatch: forEach(sendMessage),
  ReceiveMessage: receiveMessage,
  DeleteMessage: forOne(deleteMessage),
  DeleteMessageBatch: forEach(deleteMessage),
  ChangeMessageVisibility: forOne(changeVisibility),
  ChangeMessageVisibilityBatch: forEach(changeVisibility),
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
  [endPollsOperation](scope, input) {
    scope.polls.end(queueOf(scope, input).name);
    return {};
  },
};

function readQueue(input: Input) {
  const name = requiredText(input, "QueueName");
  const given = input["Attributes"];
  const fifo = isRecord(given) && given["FifoQueue"] === "true";
  if (!(fifo ? fifoName : queueName).test(name)) {
    const suffix = fifo ? "The name of a FIFO queue has to end with .fifo. " : "";
    throw new SqsError(
      "InvalidParameterValue",
      `${suffix}Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length`,
    );
  }
  return { name, attributes: checkQueueAttributes(given, fifo), fifo };
}

function checkRedrive(scope: SqsScope, attributes: QueueAttributes, fifo: boolean) {
  const { redrive } = settingsOf(attributes);
  if (redrive === undefined) return;
  const target = queueByArn(scope, redrive.deadLetterTargetArn);
  const refuse = (reason: string) =>
    invalidParameter("RedrivePolicy", attributes["RedrivePolicy"], reason);
  if (target === undefined) throw refuse("Dead letter target does not exist.");
  if (target.settings.fifo !== fifo)
    throw refuse("Dead-letter target must be the same type of queue as the source.");
}

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
