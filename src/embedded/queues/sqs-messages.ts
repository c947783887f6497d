import { createHash } from "node:crypto";
import type { CallContext, Input } from "../service/service.ts";
import {
  chooseAttributes,
  chosen,
  digestOfAttributes,
  readMessageAttributes,
  sizeOfAttributes,
} from "./message-attributes.ts";
import { isReceipt, type NewMessage, type QueueMessage, type Receive } from "./queue.ts";
import { longestVisibilitySeconds, type QueueSettings } from "./queue-settings.ts";
import type { StoredQueue } from "./queue-store.ts";
import {
  invalidParameter,
  missingParameter,
  optionalText,
  optionalWhole,
  requiredText,
  SqsError,
  texts,
} from "./sqs-input.ts";
import {
  arnOf,
  type EntryOperation,
  embeddedAccount,
  expire,
  queueByArn,
  queueOf,
  type SqsScope,
} from "./sqs-scope.ts";

/** XML cannot contain these characters, so SQS rejects them. */
const forbidden = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const identifier = /^[\x21-\x7e]{1,128}$/;

export const sendMessage: EntryOperation = ({ polls }, queue, input, now) => {
  const { name, messages, settings } = queue;
  const message = readMessage(settings, input);
  const { id, sequence } = messages.send(message, now);
  polls.wake(name);
  return {
    MessageId: id,
    MD5OfMessageBody: digest("md5", message.body),
    MD5OfMessageAttributes: message.attributes && digestOfAttributes(message.attributes),
    SequenceNumber: settings.fifo ? sequenceNumber(sequence) : undefined,
  };
};

export async function receiveMessage(scope: SqsScope, input: Input, context: CallContext) {
  const max = optionalWhole(input, "MaxNumberOfMessages", 1, 10) ?? 1;
  const visibilitySeconds = optionalWhole(input, "VisibilityTimeout", 0, longestVisibilitySeconds);
  const waitSeconds =
    optionalWhole(input, "WaitTimeSeconds", 0, 20) ?? queueOf(scope, input).settings.waitSeconds;
  const attributes = texts(input, "MessageAttributeNames");
  const system = ["AttributeNames", "MessageSystemAttributeNames"].flatMap((member) =>
    texts(input, member),
  );
  const signal = AbortSignal.any([scope.closing, context.signal]);
  const startedAt = performance.now();
  const endsAt = context.nowMs + waitSeconds * 1000;
  let now = context.nowMs;
  for (;;) {
    const queue = queueOf(scope, input);
    if (signal.aborted) return {};
    const visibilityMs = 1000 * (visibilitySeconds ?? queue.settings.visibilitySeconds);
    const taken = receive(scope, queue, { max, visibilityMs }, now);
    if (taken.length > 0)
      return { Messages: taken.map((message) => shown(message, attributes, system)) };
    if (now >= endsAt) return {};
    const waitMs = Math.min(endsAt, queue.messages.nextVisibleAt(now)) - now;
    if (await scope.polls.wait(queue.name, waitMs, signal)) return {};
    now = context.nowMs + Math.floor(performance.now() - startedAt);
  }
}

export const deleteMessage: EntryOperation = ({ polls }, { name, messages }, input, now) => {
  const receipt = receiptIn(input);
  if (messages.delete(receipt, now) === "expired")
    throw invalidParameter("ReceiptHandle", receipt, "The receipt handle has expired.");
  polls.wake(name); // the next message of the same group can now be received
  return {};
};

export const changeVisibility: EntryOperation = ({ polls }, { name, messages }, input, now) => {
  const receipt = receiptIn(input);
  const seconds = optionalWhole(input, "VisibilityTimeout", 0, longestVisibilitySeconds);
  if (seconds === undefined) throw missingParameter("VisibilityTimeout");
  const outcome = messages.changeVisibility(receipt, seconds * 1000, now);
  if (outcome === "visible")
    throw new SqsError("MessageNotInflight", "The message referred to isn't in flight.");
  if (outcome !== "changed") throw invalidReceipt(receipt);
  polls.wake(name);
  return {};
};

function readMessage(settings: QueueSettings, input: Input): NewMessage {
  const body = requiredText(input, "MessageBody");
  if (forbidden.test(body))
    throw new SqsError(
      "InvalidMessageContents",
      "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
    );
  const attributes = readMessageAttributes(input["MessageAttributes"]);
  if (Buffer.byteLength(body) + sizeOfAttributes(attributes) > settings.maximumBytes)
    throw new SqsError(
      "InvalidParameterValue",
      `One or more parameters are invalid. Reason: Message must be shorter than ${settings.maximumBytes} bytes.`,
    );
  const delaySeconds = optionalWhole(input, "DelaySeconds", 0, 900);
  if (settings.fifo && delaySeconds) throw notForThisQueue("DelaySeconds", delaySeconds);
  const group = optionalIdentifier(input, "MessageGroupId");
  if (settings.fifo) requiredText(input, "MessageGroupId");
  const deduplicationId = readDeduplicationId(settings, input, body);
  return {
    body,
    delayMs: 1000 * ((settings.fifo ? undefined : delaySeconds) ?? settings.delaySeconds),
    attributes,
    group,
    deduplicationId,
  };
}

function readDeduplicationId(
  { fifo, contentBasedDeduplication }: QueueSettings,
  input: Input,
  body: string,
) {
  const given = optionalIdentifier(input, "MessageDeduplicationId");
  if (!fifo && given !== undefined) throw notForThisQueue("MessageDeduplicationId", given);
  if (!fifo || given !== undefined) return given;
  if (contentBasedDeduplication) return digest("sha256", body);
  throw new SqsError(
    "InvalidParameterValue",
    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
  );
}

function optionalIdentifier(input: Input, member: string) {
  const value = optionalText(input, member);
  if (value !== undefined && !identifier.test(value)) {
    const reason = "Can only include alphanumeric and punctuation characters. 1 to 128 in length.";
    throw invalidParameter(member, value, reason);
  }
  return value;
}

function notForThisQueue(member: string, value: unknown) {
  const reason = "The request include parameter that is not valid for this queue type.";
  return invalidParameter(member, value, reason);
}

function receive(scope: SqsScope, queue: StoredQueue, options: Receive, now: number) {
  const { redrive } = queue.settings;
  const target = redrive && queueByArn(scope, redrive.deadLetterTargetArn);
  expire(queue, now);
  const maxReceiveCount = target && redrive.maxReceiveCount;
  const { taken, dead } = queue.messages.receive({ ...options, maxReceiveCount }, now);
  if (target) moveDeadLetters(scope, dead, { from: queue, to: target }, now);
  return taken;
}

function shown(
  { id, body, attributes, receipt, deduplicationId, ...message }: QueueMessage,
  wantedAttributes: readonly string[],
  wantedSystem: readonly string[],
) {
  const own = chooseAttributes(attributes, wantedAttributes);
  const system = {
    SenderId: embeddedAccount,
    SentTimestamp: String(message.sentAt),
    ApproximateReceiveCount: String(message.receiveCount),
    ApproximateFirstReceiveTimestamp: String(message.firstReceivedAt),
    MessageGroupId: message.group,
    MessageDeduplicationId: deduplicationId,
    SequenceNumber: deduplicationId === undefined ? undefined : sequenceNumber(message.sequence),
    DeadLetterQueueSourceArn: message.deadLetterSource,
  };
  return {
    MessageId: id,
    ReceiptHandle: receipt,
    Body: body,
    MD5OfBody: digest("md5", body),
    MessageAttributes: own,
    MD5OfMessageAttributes: own && digestOfAttributes(own),
    Attributes: chosen(system, wantedSystem),
  };
}

function digest(algorithm: "md5" | "sha256", text: string) {
  return createHash(algorithm).update(text).digest("hex");
}

function sequenceNumber(sequence: number) {
  return String(sequence).padStart(20, "0");
}

function receiptIn(input: Input) {
  const receipt = requiredText(input, "ReceiptHandle");
  if (!isReceipt(receipt)) throw invalidReceipt(receipt);
  return receipt;
}

function invalidReceipt(receipt: string) {
  return new SqsError(
    "ReceiptHandleIsInvalid",
    `The input receipt handle "${receipt.slice(0, 200)}" is not a valid receipt handle.`,
  );
}

function moveDeadLetters(
  scope: SqsScope,
  dead: readonly QueueMessage[],
  { from, to }: { from: StoredQueue; to: StoredQueue },
  now: number,
) {
  for (const message of dead) {
    // In SQS, the retention period of a moved message restarts in a FIFO queue only.
    const sentAt = to.settings.fifo ? now : message.sentAt;
    to.messages.accept({ ...message, sentAt, deadLetterSource: arnOf(scope, from) }, now);
  }
  if (dead.length > 0) scope.polls.wake(to.name);
}
