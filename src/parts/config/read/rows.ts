import { hash } from "node:crypto";
import type { ConfigScope } from "../declare/key.ts";

export interface ConfigRow {
  readonly value: unknown;
  readonly version: number;
  /** In ISO 8601. */
  readonly updatedAt?: string;
  readonly updatedBy?: string;
  readonly reason?: string;
  /** In seconds since the epoch. */
  readonly expiresAt?: number;
  /** Tombstone: the value was deleted, the version remains. */
  readonly deleted?: true;
  /** Key whose row replaced this one after a rename. */
  readonly renamedTo?: string;
  readonly [formerPlace]?: FormerPlace;
}

/** A symbol, so that no stored item can have this member. */
export const formerPlace: unique symbol = Symbol("keelson.formerPlace");

interface FormerPlace {
  readonly key: string;
  /** The superseded row under the current key. */
  readonly own: ConfigRow | undefined;
  /** All former rows that a write must supersede, this row first. */
  readonly rows: readonly { readonly key: string; readonly row: ConfigRow }[];
}

export interface RowAddress {
  readonly partition: string;
  readonly key: string;
}

export interface ConfigRowReader {
  /** One row per address, in order. A consistent read, the default, sees every acknowledged write. */
  read(
    addresses: readonly RowAddress[],
    options?: { readonly consistent?: boolean },
  ): Promise<readonly (ConfigRow | undefined)[]>;
}

export type RowSource = "user-row" | "tenant-row" | "system-row";

/** Tenant and user whose rows are read. Without a tenant, only system rows apply. */
export interface RowOwner {
  readonly tenantId: string | undefined;
  readonly userId: string | undefined;
}

export interface RowLevel {
  readonly source: RowSource;
  readonly partition: string;
}

const systemLevels: readonly RowLevel[] = Object.freeze([
  Object.freeze({ source: "system-row", partition: systemPartition() }),
]);

/** Levels that may have rows, the narrowest first (specification 4.1, rules 2, 3). */
export function rowLevels(scope: ConfigScope, { tenantId, userId }: RowOwner): readonly RowLevel[] {
  // `typeof`, because plain JavaScript passes null for a missing ID.
  if (scope === "system" || typeof tenantId !== "string") return systemLevels;
  const id = escaped(tenantId);
  const tenant: RowLevel = { source: "tenant-row", partition: `${ofTenants}${id}` };
  if (scope === "tenant" || typeof userId !== "string") return [tenant, ...systemLevels];
  const user: RowLevel = { source: "user-row", partition: `${ofUsers}${id}#${escaped(userId)}` };
  return [user, tenant, ...systemLevels];
}

export function isCurrent(row: ConfigRow | undefined, nowMs: number): row is ConfigRow {
  return (
    row !== undefined &&
    row.deleted !== true &&
    (row.expiresAt === undefined || expiryMs(row) > nowMs)
  );
}

/** A row written by hand may hold anything. NaN, which is never later, for a value of other types. */
export function expiryMs({ expiresAt }: ConfigRow): number {
  return Number(typeof expiresAt === "object" ? Number.NaN : expiresAt) * 1000;
}

export function systemPartition(): string {
  return "config#system";
}

export function tenantPartition(tenantId: string): string {
  return `${ofTenants}${escaped(tenantId)}`;
}

export function userPartition(tenantId: string, userId: string): string {
  return `${ofUsers}${escaped(tenantId)}#${escaped(userId)}`;
}

/** History is apart from the rows, so that reads of rows never include it. */
export function historyPartition(partition: string): string {
  return `history#${partition}`;
}

const ofTenants = "config#tenant#";
const ofUsers = "config#user#";

/** The narrowest first. */
export type PartitionPath = readonly Pick<RowLevel, "partition">[];

export function pathFrom(partition: string): PartitionPath {
  const system = { partition: systemPartition() };
  if (partition === system.partition) return [system];
  if (!partition.startsWith(ofUsers)) return [{ partition }, system];
  // The first `#` ends the tenant's ID, because `#` within an ID is escaped.
  const tenant = partition.slice(ofUsers.length, partition.indexOf("#", ofUsers.length));
  return [{ partition }, { partition: `${ofTenants}${tenant}` }, system];
}

/** DynamoDB allows partition keys of 2,048 bytes; the longest here has two IDs and 13 bytes. */
const longestIdBytes = 1000;

/**
 * No two IDs collide, and none reaches another partition. Lone surrogates are escaped because UTF-8
 * encodes all of them as U+FFFD. A too long ID becomes its hash, marked `%h`, which escaping never
 * produces.
 */
function escaped(id: string): string {
  if (/^[\w.:@-]{0,256}$/.test(id)) return id;
  const text = id.replace(/[%#]|\p{Surrogate}/gu, (character) =>
    character === "%" || character === "#"
      ? encodeURIComponent(character)
      : `%u${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return Buffer.byteLength(text) <= longestIdBytes ? text : `%h${hash("sha256", text)}`;
}

export interface PartitionOwner {
  readonly scope: ConfigScope;
  /** The hash of an ID that is too long for a key; `undefined` for rows of all tenants. */
  readonly tenantId: string | undefined;
  /** This partition and the broader ones, the narrowest first. */
  readonly levels: readonly RowLevel[];
}

/** Returns `undefined` for partitions without rows, such as history. */
export function ownerOf(partition: string): PartitionOwner | undefined {
  const isRows = partition === systemPartition() || /^config#(?:tenant|user)#./s.test(partition);
  if (!isRows) return undefined;
  const path = pathFrom(partition);
  // Safe cast: a path has one to three partitions.
  const scopes = ["user", "tenant", "system"].slice(-path.length) as [ConfigScope];
  const tenant = path.at(-2)?.partition.slice(ofTenants.length);
  return {
    scope: scopes[0],
    tenantId: tenant === undefined ? undefined : unescaped(tenant),
    levels: path.map((one, index) => ({ ...one, source: `${scopes[index]}-row` as RowSource })),
  };
}

function unescaped(text: string): string {
  return text.replace(/%(?:u([0-9A-F]{4})|25|23)/g, (escaped, surrogate: string | undefined) =>
    surrogate === undefined
      ? decodeURIComponent(escaped)
      : String.fromCharCode(Number.parseInt(surrogate, 16)),
  );
}
