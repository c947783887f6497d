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
   * Starts each key with its tenant: `table.key` makes the keys, and no command of `ctx.db` and
   * `ctx.commit` reaches another tenant's rows. Default `false`.
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
  /** Attributes besides all keys, `[]` for none. Default: all attributes of the item. */
  readonly project?: readonly string[];
}

/** Key attributes of tables and indexes are strings. */
export interface TableDeclaration {
  /** Logical name: `files`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** Attribute of DynamoDB's time to live, in seconds since the epoch. */
  readonly timeToLive?: string;
  /** Set if keys start with their tenant. */
  readonly tenant?: true;
  readonly indexes: readonly IndexDeclaration[];
}

export interface IndexDeclaration {
  /** Logical and physical name: `byOwner`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** Without keys, each once. `undefined`: all attributes. */
  readonly project: readonly string[] | undefined;
}

/** A declared table, as handlers use it. */
export interface TableHandle<Index extends string = never> {
  /**
   * Physical name: `KEELSON_TABLE_<NAME>`, or `<prefix>-<name>` without that variable.
   * @throws Error outside of a request, because the name depends on the server.
   */
  readonly name: string;
  /**
   * Returns an index's name, for `IndexName`.
   * @throws Error if the table declares no such index.
   */
  readonly index: (name: Index) => string;
}

export const configTable: TableDeclaration = ownTable("config");

/** Claims. DynamoDB's time to live deletes expired ones. */
export const onceTable: TableDeclaration = ownTable("once", "expiration");

/** Events that wait for dispatch. */
export const outboxTable: TableDeclaration = ownTable("outbox");

/** Kept events and the state of projections. */
export const keptEventsTable: TableDeclaration = Object.freeze({
  ...ownTable("kept-events", "expiration"),
  tenant: true,
});

/** Names that no feature can declare: its handlers would reach keelson's tables. */
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
