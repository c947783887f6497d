import { quoted } from "../../base/errors/quoted.ts";
import { tenantPrefix } from "./tenant-prefix.ts";

interface KeyedTable {
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  readonly indexes: readonly { readonly partitionKey: string }[];
}

/** DynamoDB's limits for partition and sort keys. */
const [maxPartitionBytes, maxSortBytes] = [2_048, 1_024];

/** Implements `TenantTable.key`, which documents the errors. */
export function tenantKey(
  table: KeyedTable,
  tenantId: string | undefined,
  partition: unknown,
  sort?: unknown,
): Readonly<Record<string, string>> {
  const { name, partitionKey, sortKey, indexes } = table;
  const what = `table ${quoted(name)}: key`;
  const key = { [partitionKey]: withTenant(what, tenantId, partition, maxPartitionBytes) };
  if (sort === undefined) return key;
  if (sortKey === undefined) throw new TypeError(`${what}: the table has no sort key`);
  const isLed = indexes.some((index) => index.partitionKey === sortKey);
  key[sortKey] = isLed
    ? withTenant(what, tenantId, sort, maxSortBytes)
    : checked(what, "", sort, maxSortBytes);
  return key;
}

export function tenantValue(
  { name }: KeyedTable,
  tenantId: string | undefined,
  text: unknown,
): string {
  return withTenant(`table ${quoted(name)}: value`, tenantId, text, maxPartitionBytes);
}

function withTenant(
  what: string,
  tenantId: string | undefined,
  text: unknown,
  maxBytes: number,
): string {
  if (!tenantId) throw new TypeError(`${what}: the run has no tenant; only a tenant has rows here`);
  return checked(what, tenantPrefix(tenantId), text, maxBytes);
}

function checked(what: string, prefix: string, text: unknown, maxBytes: number): string {
  if (text instanceof Promise) throw new TypeError(`${what}: it is a promise; await it`);
  if (typeof text !== "string") throw new TypeError(`${what}: ${quoted(text)} is not a string`);
  const whole = prefix + text;
  const bytes = Buffer.byteLength(whole);
  if (bytes > maxBytes)
    throw new RangeError(
      `${what}: the key has ${bytes} bytes with its tenant, and DynamoDB takes ${maxBytes}`,
    );
  return whole;
}
