import { isRecord } from "../../base/errors/option-table.ts";
import {
  type AwsJsonService,
  type CallContext,
  type Input,
  ServiceError,
  unknownOperation,
} from "../service/service.ts";
import { listDeadLetterSourceQueues, startMessageMoveTask } from "./dead-letters.ts";
import { endPollsOperation } from "./end-polls.ts";
import { createLongPolls } from "./long-polls.ts";
import {
  checkQueueAttributes,
  effectiveAttributes,
  isSettable,
  type QueueAttributes,
  settingsOf,
} from "./queue-settings.ts";
import { openQueueStore, type StoredQueue } from "./queue-store.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";
import { optionalText, requiredText, texts } from "./sqs-input.ts";
import { endPolls, receiveMessage, sendMessage, sendMessageBatch } from "./sqs-messages.ts";
import {
  changeMessageVisibility,
  changeMessageVisibilityBatch,
  deleteMessage,
  deleteMessageBatch,
} from "./sqs-receipts.ts";
import { arnOf, existing, expire, queueByArn, queueOf, type SqsScope, urlOf } from "./sqs-scope.ts";

const queueName = /^[\w-]{1,80}$/;
const fifoName = /^(?=.{6,80}$)[\w-]+\.fifo$/;

type Operation = (scope: SqsScope, input: Input, context: CallContext) => object | Promise<object>;

const operations: Readonly<Record<string, Operation>> = {
  CreateQueue: createQueue,
  GetQueueUrl: getQueueUrl,
  GetQueueAttributes: getQueueAttributes,
  SetQueueAttributes: setQueueAttributes,
  ListQueues: listQueues,
  DeleteQueue: deleteQueue,
  PurgeQueue: purgeQueue,
  SendMessage: sendMessage,
  SendMessageBatch: sendMessageBatch,
  ReceiveMessage: receiveMessage,
  DeleteMessage: deleteMessage,
  DeleteMessageBatch: deleteMessageBatch,
  ChangeMessageVisibility: changeMessageVisibility,
  ChangeMessageVisibilityBatch: changeMessageVisibilityBatch,
  StartMessageMoveTask: startMessageMoveTask,
  ListDeadLetterSourceQueues: listDeadLetterSourceQueues,
  [endPollsOperation]: endPolls,
};

export interface Sqs extends AwsJsonService {
  call(operation: string, input: Input, context: CallContext): Promise<object>;
  close(): void;
}

interface SqsOptions {
  readonly path?: string | undefined;
  readonly region?: string;
}

/**
 * Opens SQS. Callers pass the time of a call, from where a long poll continues by the system clock.
 * @throws Error if the file is corrupt.
 */
export function openSqs({ path, region = "us-east-1" }: SqsOptions = {}): Sqs {
  const store = openQueueStore(path);
  const closing = new AbortController();
  const scope: SqsScope = { store, polls: createLongPolls(), region, closing: closing.signal };
  return {
    targetPrefix: "AmazonSQS.",
    async call(name, input, context) {
      const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
      if (operation === undefined) throw unknownOperation(name);
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
  };
}

function createQueue(scope: SqsScope, input: Input, context: CallContext): object {
  const name = requiredText(input, "QueueName");
  const given = input["Attributes"];
  const fifo = isRecord(given) && given["FifoQueue"] === "true";
  if (!(fifo ? fifoName : queueName).test(name)) {
    const rule =
      "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
    throw new SqsError(
      "InvalidParameterValue",
      fifo ? `The name of a FIFO queue has to end with .fifo. ${rule}` : rule,
    );
  }
  const attributes = checkQueueAttributes(given, fifo);
  const before = scope.store.get(name);
  if (before === undefined) {
    checkRedrive(scope, attributes, fifo);
    return { QueueUrl: urlOf(context, scope.store.create(name, attributes, context.nowMs)) };
  }
  const current = effectiveAttributes(before.attributes);
  const other = Object.entries(attributes).find(
    ([attribute, value]) => (current[attribute] ?? "") !== value,
  );
  if (other !== undefined) {
    throw new SqsError(
      "QueueNameExists",
      `A queue already exists with the same name and a different value for attribute ${other[0]}`,
    );
  }
  return { QueueUrl: urlOf(context, before) };
}

function getQueueUrl({ store }: SqsScope, input: Input, context: CallContext): object {
  return { QueueUrl: urlOf(context, existing(store.get(requiredText(input, "QueueName")))) };
}

function getQueueAttributes(scope: SqsScope, input: Input, { nowMs }: CallContext): object {
  const queue = queueOf(scope, input);
  const wanted = texts(input, "AttributeNames");
  const all = shownAttributes(scope, queue, nowMs);
  const unknown = wanted.find(
    (name) => name !== "All" && !isSettable(name) && !Object.hasOwn(all, name),
  );
  if (unknown !== undefined)
    throw new SqsError("InvalidAttributeName", `Unknown Attribute ${unknown.slice(0, 200)}.`);
  const shown = Object.entries(all).filter(
    ([name]) => wanted.includes("All") || wanted.includes(name),
  );
  return shown.length === 0 ? {} : { Attributes: Object.fromEntries(shown) };
}

function setQueueAttributes(scope: SqsScope, input: Input, { nowMs }: CallContext): object {
  const queue = queueOf(scope, input);
  const attributes = checkQueueAttributes(input["Attributes"], queue.settings.fifo);
  checkRedrive(scope, attributes, queue.settings.fifo);
  scope.store.configure(queue, { ...queue.attributes, ...attributes }, nowMs);
  scope.polls.wake(queue.name);
  return {};
}

function listQueues({ store }: SqsScope, input: Input, context: CallContext): object {
  const prefix = optionalText(input, "QueueNamePrefix") ?? "";
  const found = store.all().filter(({ name }) => name.startsWith(prefix));
  return found.length === 0 ? {} : { QueueUrls: found.map((queue) => urlOf(context, queue)) };
}

function deleteQueue(scope: SqsScope, input: Input): object {
  const queue = queueOf(scope, input);
  scope.store.delete(queue);
  scope.polls.wake(queue.name);
  return {};
}

function purgeQueue(scope: SqsScope, input: Input): object {
  queueOf(scope, input).messages.remove(() => true);
  return {};
}

function shownAttributes(scope: SqsScope, queue: StoredQueue, now: number): QueueAttributes {
  expire(queue, now);
  const { visible, inFlight, delayed } = queue.messages.counts(now);
  return {
    ...effectiveAttributes(queue.attributes),
    QueueArn: arnOf(scope, queue),
    ApproximateNumberOfMessages: String(visible),
    ApproximateNumberOfMessagesNotVisible: String(inFlight),
    ApproximateNumberOfMessagesDelayed: String(delayed),
    CreatedTimestamp: String(Math.floor(queue.createdAt / 1000)),
    LastModifiedTimestamp: String(Math.floor(queue.modifiedAt / 1000)),
  };
}

/** The dead-letter queue has to exist, and be of the same type. */
function checkRedrive(scope: SqsScope, attributes: QueueAttributes, fifo: boolean): void {
  const { redrive } = settingsOf(attributes);
  if (redrive === undefined) return;
  const target = queueByArn(scope, redrive.deadLetterTargetArn);
  const refuse = (reason: string) =>
    invalidParameter("RedrivePolicy", attributes["RedrivePolicy"], reason);
  if (target === undefined) throw refuse("Dead letter target does not exist.");
  if (target.settings.fifo !== fifo)
    throw refuse("Dead-letter target must be the same type of queue as the source.");
}
