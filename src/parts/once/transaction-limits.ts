import type { TransactionItem } from "./claim-store.ts";

const actionNames = ["Put", "Update", "Delete", "ConditionCheck"];
/** DynamoDB's limits for a transaction (items, bytes) and for an item (bytes). */
const [maxItems, maxBytes, maxItemBytes] = [100, 4 * 1_048_576, 409_600];

/**
 * Checks a commit against DynamoDB's limits before anything is sent.
 *
 * @param reserved - number of items that keelson adds: one for a claim, one for each event, two for
 * an event that is kept.
 * @throws RangeError with the limit and the actual number; TypeError for a malformed list or item.
 */
export function assertCommittable(
  items: readonly TransactionItem[],
  reserved: number,
  reservedBytes: number,
): void {
  if (!Array.isArray(items))
    throw new TypeError("ctx.commit: the items are not a list; pass [] to commit a result alone");
  for (const [index, item] of items.entries()) {
    const [action, ...others] = Object.keys(item ?? {}).filter((name) => item[name] !== undefined);
    if (others.length > 0 || !actionNames.includes(String(action)))
      throw new TypeError(
        `ctx.commit: item ${index} is not one of Put, Update, Delete and ConditionCheck`,
      );
  }
  if (items.length + reserved > maxItems)
    throw new RangeError(
      `ctx.commit: ${items.length} items and ${reserved} of keelson's own are more than the ${maxItems} of a transaction; commit less at once`,
    );
  let total = reservedBytes;
  for (const [index, item] of items.entries()) {
    const bytes = sizeOf(item);
    if (bytes > maxItemBytes + 65_536)
      throw new RangeError(
        `ctx.commit: item ${index} has some ${bytes} bytes, and an item of DynamoDB at most ${maxItemBytes}`,
      );
    total += bytes;
  }
  if (total > maxBytes)
    throw new RangeError(
      `ctx.commit: the items have some ${total} bytes, and a transaction at most ${maxBytes}; commit less at once`,
    );
}

/** Estimates the size of a value in bytes, close to the way DynamoDB counts it. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "number" || typeof value === "bigint")
    return Math.ceil(String(value).length / 2) + 1;
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return value.byteLength;
  if (value instanceof Set) return sizeOf([...value]);
  if (typeof value !== "object" || value === null) return 1;
  let bytes = 3;
  for (const [name, part] of Object.entries(value))
    bytes += (Array.isArray(value) ? 0 : Buffer.byteLength(name)) + 1 + sizeOf(part);
  return bytes;
}
