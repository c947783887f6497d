import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import type { Database } from "../../base/types/database.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import { tableOf } from "./table.ts";

export type Place = Pick<OutboxRow, "shard" | "sort">;

const { maxBytes } = serviceSizes.dynamodbText;
/** Parts of the largest message that a queue accepts. */
export const largestParts = Math.ceil(serviceSizes.sqsMessage.maxBytes / (maxBytes - 3));
/** More than the largest message has, even if services accept larger ones. */
const mostParts = 50;

interface PartKey {
  readonly pk: string;
  readonly sk: string;
  readonly [attribute: string]: string;
}

/**
 * Splits a message that is too large for one row into parts of about equal size. The proof, at the end
 * of a message, is therefore never divided. Returns `[]` if it fits.
 */
export function partsOf(text: string): readonly string[] {
  // A UTF-16 unit has at most three bytes, so most messages are not encoded.
  if (text.length * 3 <= maxBytes) return [];
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return [];
  // Three bytes less, because a part may end up to three bytes early.
  const count = Math.ceil(bytes.length / (maxBytes - 3));
  const parts: string[] = [];
  for (let start = 0, number = 1; number <= count; number += 1) {
    const end = characterStart(bytes, Math.ceil((bytes.length * number) / count));
    parts.push(bytes.toString("utf8", start, end));
    start = end;
  }
  return parts;
}

/** Bytes of UTF-8 that continue a character have the bits 10 in front. */
function characterStart(bytes: Uint8Array, from: number): number {
  let at = from;
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  return at;
}

/** Writes the parts of a row, in the transaction of its head. */
export function partPuts(TableName: string, row: OutboxRow): readonly TransactionItem[] {
  const { tenantId } = row;
  const owner = tenantId === undefined ? {} : { tenantId };
  return partsOf(row.text).map((envelope, index) => ({
    Put: { TableName, Item: { ...partKey(row, index), ...owner, envelope } },
  }));
}

/** The count comes from the row, and no message has more than a few parts. */
export function partKeys(place: Place, count: number): readonly PartKey[] {
  return Array.from({ length: Math.min(count, mostParts) }, (_, index) => partKey(place, index));
}

/** Reads the message of a large row. Returns `undefined` if a part is missing. */
export async function readParts(
  database: Database,
  tableName: string,
  place: Place,
  count: number,
): Promise<string | undefined> {
  const parts: string[] = [];
  const pages = tableOf(database, tableName).queryAll({
    KeyConditionExpression: "pk = :parts",
    ExpressionAttributeValues: { ":parts": partKey(place, 0).pk },
  });
  for await (const { Items = [] } of pages)
    for (const { envelope } of Items) parts.push(String(envelope));
  return parts.length === count ? parts.join("") : undefined;
}

/** No version of the sweep reads these partitions. */
function partKey({ shard, sort }: Place, index: number): PartKey {
  return { pk: `part#${shard}#${sort}`, sk: String(index) };
}
