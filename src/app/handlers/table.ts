import type { Variables } from "../../base/process/environment.ts";

/** Options of a table. */
export interface TableOptions<
  Index extends string = string,
  Partition extends string = string,
  Sort extends string = string,
  Tenant extends boolean = boolean,
> {
  readonly partitionKey: Partition;
  /** Default: none. */
  readonly sortKey?: Sort;
  /**
   * Whether each key starts with a tenant. `table.key` makes such keys, and `ctx.db` and
   * `ctx.commit` reach only the rows of the caller's tenant. Default `false`.
   */
  readonly tenant?: Tenant;
  /** Global secondary indexes by name. Default: none. */
  readonly indexes?: Readonly<Record<Index, IndexOptions>>;
}

/** A global secondary index. It omits items that lack one of its keys. */
export interface IndexOptions {
  readonly partitionKey: string;
  /** Default: none. */
  readonly sortKey?: string;
  /** Attributes in the index besides all keys, `[]` for none. Default: all of the item. */
  readonly project?: readonly string[];
}

/** A declared table. The key attributes of tables and indexes are strings. */
export interface TableDeclaration {
  /** Logical name: `files`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** Attribute with the time, in seconds since the epoch, after which DynamoDB deletes an item. */
  readonly timeToLive?: string;
  /** Set if each key starts with a tenant. */
  readonly tenant?: true;
  readonly indexes: readonly IndexDeclaration[];
}

export interface IndexDeclaration {
  /** Logical and physical name: `byOwner`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** Projected attributes, without keys and duplicates. `undefined`: all attributes. */
  readonly project: readonly string[] | undefined;
}

/** A declared table, as handlers use it. */
export interface TableHandle<Index extends string = never> {
  /**
   * Physical name: `KEELSON_TABLE_<NAME>`, or `<prefix>-<name>` without that variable.
   * @throws Error if no handler is running, because the name depends on the server.
   */
  readonly name: string;
  /**
   * Returns an index's name, for `IndexName`.
   * @throws Error if the table declares no such index.
   */
  readonly index: (name: Index) => string;
}

export const configTable: TableDeclaration = ownTable("config");

/** Table of claims. DynamoDB deletes expired claims. */
export const onceTable: TableDeclaration = ownTable("once", "expiration");

/** Table of messages that wait for dispatch. */
export const outboxTable: TableDeclaration = ownTable("outbox");

/** Table of kept events and of the state of projections. */
export const keptEventsTable: TableDeclaration = Object.freeze({
  ...ownTable("kept-events", "expiration"),
  tenant: true,
});

/** Names that no feature can declare, because its handlers would reach keelson's tables. */
export const reservedTables: readonly string[] = [
  configTable,
  onceTable,
  outboxTable,
  keptEventsTable,
].map(({ name }) => name);

/** Returns `KEELSON_TABLE_<NAME>`, or `<prefix>-<name>` without that variable. */
export function physicalTableName(name: string, prefix: string, variables: Variables): string {
  return variables[tableVariable(name)] || `${prefix}-${name}`;
}

export function tableVariable(name: string): string {
  return `KEELSON_TABLE_${name.toUpperCase().replaceAll("-", "_")}`;
}

function ownTable(name: string, timeToLive?: string): TableDeclaration {
  const expiring = timeToLive === undefined ? {} : { timeToLive };
  return Object.freeze({ name, partitionKey: "pk", sortKey: "sk", ...expiring, indexes: [] });
}
