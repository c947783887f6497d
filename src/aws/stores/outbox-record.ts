import type { DynamoDBRecord } from "aws-lambda";
import { asidePartition } from "./aside-store.ts";

export interface WrittenRow {
  readonly shard: string;
  readonly sort: string;
  readonly sequenceNumber: string;
}

type OutboxRecord =
  | { readonly row: WrittenRow }
  /** The server's own outbox never writes a record that `isForeign`. */
  | { readonly skipped: string; readonly isForeign: boolean };

const shardKey = /^shard#\d{1,4}$/;
const dueKey = /^due#\d{1,4}$/;
const partKey = /^part#/;
const sortKey = /^\d{15}#[\w-]{1,128}$/;

/** Never throws, because any caller may have sent the record. */
export function readOutboxRecord(
  record: DynamoDBRecord | undefined,
  tableName: string,
): OutboxRecord {
  const own = (skipped: string) => ({ skipped, isForeign: false });
  const foreign = (skipped: string) => ({ skipped, isForeign: true });
  const { eventSource, eventSourceARN, eventName, dynamodb } = record ?? {};
  if (eventSource !== "aws:dynamodb") return foreign("it is not of a DynamoDB stream");
  if (tableOf(eventSourceARN) !== shortName(tableName)) return foreign("it is of another table");
  const { pk, sk } = dynamodb?.Keys ?? {};
  // The sweep sends the job when it is due.
  if (isText(pk?.S, dueKey)) return own("it is of a job that is due later");
  // Expected: each row is removed once it is dispatched.
  if (eventName === "REMOVE") return own("its row was removed");
  if (eventName !== "INSERT") return foreign("its row was not inserted");
  const [shard, sort, sequenceNumber] = [pk?.S, sk?.S, dynamodb?.SequenceNumber];
  if (isText(shard, partKey)) return own("it is a part of a large row");
  if (shard === asidePartition) return own("its row was set aside");
  if (!isText(shard, shardKey) || !isText(sort, sortKey))
    return foreign("its keys are not an outbox row's");
  if (!isText(sequenceNumber, /^\d{1,100}$/)) return foreign("it has no sequence number");
  return { row: { shard, sort, sequenceNumber } };
}

function tableOf(arn: unknown): string | undefined {
  return typeof arn === "string"
    ? /^arn:[^:]*:dynamodb:[^:]*:[^:]*:table\/([^/]+)\/stream\//.exec(arn)?.[1]
    : undefined;
}

function shortName(tableName: string): string {
  return tableName.slice(tableName.lastIndexOf("/") + 1);
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}
