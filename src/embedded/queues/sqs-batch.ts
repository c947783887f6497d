import { isRecord } from "../../base/errors/option-table.ts";
import type { Input, Operation } from "../service/service.ts";
import { longestMessageBytes } from "./queue-settings.ts";
import type { StoredQueue } from "./queue-store.ts";
import { SqsError } from "./sqs-error.ts";
import { queueOf, type SqsScope } from "./sqs-scope.ts";

const most = 10;

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
  if (!Array.isArray(entries) || entries.length === 0) {
    throw new SqsError("EmptyBatchRequest", "There should be at least one entry in the request.");
  }
  if (entries.length > most) {
    throw new SqsError(
      "TooManyEntriesInBatchRequest",
      `Maximum number of entries per request are ${most}. You have sent ${entries.length}.`,
    );
  }
  if (
    !entries.every(isRecord) ||
    !entries.every(({ Id }) => typeof Id === "string" && /^[\w-]{1,80}$/.test(Id))
  ) {
    throw new SqsError(
      "InvalidBatchEntryId",
      "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
    );
  }
  if (new Set(entries.map(({ Id }) => Id)).size < entries.length) {
    throw new SqsError(
      "BatchEntryIdsNotDistinct",
      "Two or more batch entries in the request have the same Id.",
    );
  }
  const bodies = entries.map(({ MessageBody }) => String(MessageBody ?? ""));
  const bytes = Buffer.byteLength(bodies.join(""));
  if (bytes > longestMessageBytes) {
    throw new SqsError(
      "BatchRequestTooLong",
      `Batch requests cannot be longer than ${longestMessageBytes} bytes. You have sent ${bytes} bytes.`,
    );
  }
  return entries;
}

/** Runs all entries of a batch; a failed entry does not affect the others. */
export function answerBatch(entries: readonly Input[], run: (entry: Input) => object): object {
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
