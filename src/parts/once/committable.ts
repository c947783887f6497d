import type { TransactionItem } from "./claim-store.ts";

const actionNames = ["Put", "Update", "Delete", "ConditionCheck"];
/** DynamoDB's limits for a transaction (items, bytes) and for an item (bytes). */
const [maxItems, maxBytes, maxItemBytes] = [100, 4 * 1_048_576, 409_600];

/**
 * @param reserved - number of items that keelson adds: one for a claim, one for each effect, one
 * more for a kept event, and up to three more for an effect above 384 KiB.
 * @throws RangeError with the limit and the actual number; TypeError for a malformed list or item.
 */
export function assertCommittable(
  items: readonly TransactionItem[],
  reserved: number,
  reservedBytes: number,
): void {
  if (!Array.isArray(items))
    throw new TypeError("ctx.commit: the items are not a list; pass [] to commit only a result");
  for (const [index, item] of items.entries()) {
    const [action, ...others] = Object.keys(withoutNote(item ?? {})).filter(
      (name) => item[name] !== undefined,
    );
    if (others.length > 0 || !actionNames.includes(String(action)))
      throw new TypeError(
        `ctx.commit: item ${index} is not one of Put, Update, Delete and ConditionCheck`,
      );
  }
  if (items.length + reserved > maxItems)
    throw new RangeError(
      `ctx.commit: ${items.length} items and ${reserved} of keelson's own are more than the ${maxItems} of a transaction; commit fewer items, or publish, enqueue and send with { afterCommit: false }`,
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
      `ctx.commit: the items have some ${total} bytes, and a transaction of DynamoDB at most ${maxBytes}; commit less`,
    );
}

/** Estimates the size of a value in bytes, as DynamoDB counts it. */
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

/** DynamoDB-Toolbox adds `ToolboxItem` to its items, for itself. */
export function withoutNote({ ToolboxItem: _note, ...item }: TransactionItem): TransactionItem {
  return item;
}
