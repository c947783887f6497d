import { isRecord } from "../../base/errors/option-table.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import type { CallContext, Input, Operation } from "../service/service.ts";
import type { LongPolls } from "./long-polls.ts";
import { readMessageAttributes, sizeOfAttributes } from "./message-attributes.ts";
import type { QueueStore, StoredQueue } from "./queue-store.ts";
import { requiredText, SqsError } from "./sqs-input.ts";

export const embeddedAccount = "000000000000";

export interface SqsScope {
  readonly store: QueueStore;
  readonly polls: LongPolls;
  readonly region: string;
  readonly closing: AbortSignal;
}

export function queueOf({ store }: SqsScope, input: Input) {
  const url = requiredText(input, "QueueUrl");
  return existing(store.get(url.slice(url.lastIndexOf("/") + 1)));
}

export function existing(queue: StoredQueue | undefined) {
  if (queue === undefined)
    throw new SqsError("QueueDoesNotExist", "The specified queue does not exist.");
  return queue;
}

export function queueByArn({ store }: SqsScope, arn: string): StoredQueue | undefined {
  return /^arn:aws:sqs:[^:]+:[^:]+:[^:]+$/.test(arn)
    ? store.get(arn.slice(arn.lastIndexOf(":") + 1))
    : undefined;
}

export function arnOf({ region }: SqsScope, { name }: StoredQueue) {
  return `arn:aws:sqs:${region}:${embeddedAccount}:${name}`;
}

export function urlOf({ endpoint }: CallContext, { name }: StoredQueue) {
  return `${endpoint}/${embeddedAccount}/${name}`;
}

export function expire({ messages, settings }: StoredQueue, now: number) {
  messages.remove(({ sentAt }) => sentAt + settings.retentionMs <= now);
}

export type EntryOperation = (
  scope: SqsScope,
  queue: StoredQueue,
  entry: Input,
  nowMs: number,
) => object;

export function forOne(run: EntryOperation): Operation<SqsScope> {
  return (scope, input, { nowMs }) => run(scope, queueOf(scope, input), input, nowMs);
}

export function forEach(run: EntryOperation): Operation<SqsScope> {
  return (scope, input, { nowMs }) => {
    const queue = queueOf(scope, input);
    return answerBatch(batchEntries(input), (entry) => run(scope, queue, entry, nowMs));
  };
}

function batchEntries({ Entries: entries }: Input): readonly Input[] {
  if (!Array.isArray(entries) || entries.length === 0)
    throw new SqsError("EmptyBatchRequest", "There should be at least one entry in the request.");
  if (entries.length > 10)
    throw new SqsError(
      "TooManyEntriesInBatchRequest",
      `Maximum number of entries per request are 10. You have sent ${entries.length}.`,
    );
  const hasId = ({ Id }: Input) => typeof Id === "string" && /^[\w-]{1,80}$/.test(Id);
  if (!entries.every((entry) => isRecord(entry) && hasId(entry)))
    throw new SqsError(
      "InvalidBatchEntryId",
      "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
    );
  if (new Set(entries.map(({ Id }) => Id)).size < entries.length)
    throw new SqsError(
      "BatchEntryIdsNotDistinct",
      "Two or more batch entries in the request have the same Id.",
    );
  const bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
  const { maxBytes } = serviceSizes.sqsMessage;
  if (bytes > maxBytes)
    throw new SqsError(
      "BatchRequestTooLong",
      `Batch requests cannot be longer than ${maxBytes} bytes. You have sent ${bytes} bytes.`,
    );
  return entries;
}

/** An entry whose attributes are invalid counts by its body; it fails on its own later. */
function bytesOf({ MessageBody, MessageAttributes }: Input) {
  const body = Buffer.byteLength(String(MessageBody ?? ""));
  try {
    return body + sizeOfAttributes(readMessageAttributes(MessageAttributes));
  } catch {
    return body;
  }
}

export function answerBatch(entries: readonly Input[], run: (entry: Input) => object) {
  const Successful: object[] = [];
  const Failed: object[] = [];
  for (const entry of entries) {
    const { Id } = entry;
    try {
      Successful.push({ Id, ...run(entry) });
    } catch (error) {
      if (!(error instanceof SqsError)) throw error;
      Failed.push({ Id, Code: error.code, Message: error.message, SenderFault: true });
    }
  }
  return { Successful, Failed };
}
