import { createHash } from "node:crypto";
import type { ConfigScope } from "../declare/key.ts";

/** A stored value of one key at one level. */
export interface ConfigRow {
  readonly value: unknown;
  /** Grows with each write. */
  readonly version: number;
  /** ISO 8601. */
  readonly updatedAt?: string;
  readonly updatedBy?: string;
  readonly reason?: string;
  /** In seconds since the epoch; from then on the row does not count. */
  readonly expiresAt?: number;
  /** A tombstone: the value was deleted, the version lives on. */
  readonly deleted?: true;
  /** The key that has taken the row's place; for that one it counts no more. */
  readonly renamedTo?: string;
  /** Where the row lies, if that is under a former key. */
  readonly [formerPlace]?: FormerPlace;
}

/** A symbol, which no stored item has. */
export const formerPlace: unique symbol = Symbol("keelson.formerPlace");

/** The place of a row that lies under a former key. */
export interface FormerPlace {
  /** The former key's identifier. */
  readonly key: string;
  /** What lies under the key itself; it does not count. */
  readonly own: ConfigRow | undefined;
  /** All former rows that a write has to supersede, this one first. */
  readonly rows: readonly { readonly key: string; readonly row: ConfigRow }[];
}

/** Where a row is stored. */
export interface RowAddress {
  readonly partition: string;
  /** The key's identifier. */
  readonly key: string;
}

/** Reads rows from wherever they are kept. */
export interface ConfigRowReader {
  /**
   * Returns one row for each address, in the same order; `undefined` where none is stored.
   *
   * @param options - `consistent` (default `true`): whether every write that was answered before is seen.
   */
  read(
    addresses: readonly RowAddress[],
    options?: { readonly consistent?: boolean },
  ): Promise<readonly (ConfigRow | undefined)[]>;
}

/** The source of a value that comes from a row (specification 2.2). */
export type RowSource = "user-row" | "tenant-row" | "system-row";

/** Whose rows are read. Without a tenant there are neither tenant nor user rows. */
export interface RowOwner {
  readonly tenantId: string | undefined;
  readonly userId: string | undefined;
}

/** A partition, and what a value from it is called. */
export interface RowLevel {
  readonly source: RowSource;
  readonly partition: string;
}

const systemLevels: readonly RowLevel[] = Object.freeze([
  Object.freeze({ source: "system-row", partition: systemPartition() }),
]);

/** The levels whose rows count for a key of `scope`, the narrowest first (specification 4.1, rules 2 and 3). */
export function rowLevels(scope: ConfigScope, { tenantId, userId }: RowOwner): readonly RowLevel[] {
  // `typeof`, not a comparison: plain JavaScript passes null for nobody.
  if (scope === "system" || typeof tenantId !== "string") return systemLevels;
  const tenant: RowLevel = { source: "tenant-row", partition: tenantPartition(tenantId) };
  if (scope === "tenant" || typeof userId !== "string") return [tenant, ...systemLevels];
  return [
    { source: "user-row", partition: userPartition(tenantId, userId) },
    tenant,
    ...systemLevels,
  ];
}

/** Whether a row counts at `nowMs`: it is there, no tombstone, and not expired. */
export function isCurrent(row: ConfigRow | undefined, nowMs: number): row is ConfigRow {
  return (
    row !== undefined &&
    row.deleted !== true &&
    (row.expiresAt === undefined || row.expiresAt * 1000 > nowMs)
  );
}

/** The partition of the rows that hold for all tenants. */
export function systemPartition(): string {
  return "config#system";
}

/** The partition of one tenant's rows. */
export function tenantPartition(tenantId: string): string {
  return `config#tenant#${escaped(tenantId)}`;
}

/** The partition of one user's rows. */
export function userPartition(tenantId: string, userId: string): string {
  return `${ofUsers}${escaped(tenantId)}#${escaped(userId)}`;
}

/** The partition in which the history of a partition's rows lies, so that no read of rows comes across it. */
export function historyPartition(partition: string): string {
  return `history#${partition}`;
}

const ofUsers = "config#user#";

/** Partitions, the narrowest first: a user's, its tenant's, the one that holds for all tenants; or the last ones of these. */
export type PartitionPath = readonly Pick<RowLevel, "partition">[];

/** The path that begins with a partition. */
export function pathFrom(partition: string): PartitionPath {
  const system = { partition: systemPartition() };
  if (partition === system.partition) return [system];
  if (!partition.startsWith(ofUsers)) return [{ partition }, system];
  // Safe to look for: an ID's own `#` is escaped.
  const owner = `config#tenant#${partition.slice(ofUsers.length, partition.indexOf("#", ofUsers.length))}`;
  return [{ partition }, { partition: owner }, system];
}

/** DynamoDB takes partition keys of up to 2048 bytes; the longest of ours has two IDs and 13 bytes more. */
const longestIdBytes = 1000;

/**
 * Makes an ID part of a partition so that no two IDs meet and none reaches another partition:
 * `#` separates and `%` escapes; lone surrogates would all become U+FFFD in UTF-8; an over-long
 * ID is replaced by its hash, marked `%h`, which escaping never produces.
 */
function escaped(id: string): string {
  if (/^[\w.:@-]{0,256}$/.test(id)) return id;
  const text = id.replace(/[%#]|\p{Surrogate}/gu, (character) =>
    character === "%" || character === "#"
      ? encodeURIComponent(character)
      : `%u${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return Buffer.byteLength(text) <= longestIdBytes
    ? text
    : `%h${createHash("sha256").update(text).digest("hex")}`;
}
