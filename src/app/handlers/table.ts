import type { Variables } from "../../base/process/environment.ts";

/** Options of a table. */
export interface TableOptions<
  Index extends string = string,
  Partition extends string = string,
  Sort extends string = string,
  Tenant extends boolean = boolean,
> {
  /** Attribute of the partition key, a string. */
  readonly partitionKey: Partition;
  /** Attribute of the sort key, a string. Default: none. */
  readonly sortKey?: Sort;
  /**
   * Starts each key with its tenant: `table.key` makes the keys, and no command of `ctx.db` and
   * `ctx.commit` reaches another tenant's rows. Default `false`.
   */
  readonly tenant?: Tenant;
  /** Global secondary indexes of the table, by name. Default: none. */
  readonly indexes?: Readonly<Record<Index, IndexOptions>>;
}

/** Options of a global secondary index, which omits items that lack one of its keys. */
export interface IndexOptions {
  /** Attribute of the index's partition key, a string. */
  readonly partitionKey: string;
  /** Attribute of the index's sort key, a string. Default: none. */
  readonly sortKey?: string;
  /**
   * Attributes in the index in addition to all keys. `[]` projects only the keys. Default: all
   * attributes of the item.
   */
  readonly project?: readonly string[];
}

/**
 * DynamoDB table that a feature declares. The key attributes of the table and its indexes are
 * strings.
 */
export interface TableDeclaration {
  /** Logical name: `files`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** Attribute with the expiry time for DynamoDB's time to live, in seconds since the epoch. */
  readonly timeToLive?: string;
  /** Set if keys start with their tenant. */
  readonly tenant?: true;
  /** In declaration order. */
  readonly indexes: readonly IndexDeclaration[];
}

export interface IndexDeclaration {
  /** Logical and physical name: `byOwner`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /**
   * Projected attributes without the keys of the table and the index, each once. `undefined`: all
   * attributes.
   */
  readonly project: readonly string[] | undefined;
}

/** A declared table, as a handler uses it. */
export interface TableHandle<Index extends string = never> {
  /**
   * Physical name: `KEELSON_TABLE_<NAME>`, or `<prefix>-<name>` without that variable.
   *
   * @throws Error outside of a request, because the name depends on the server.
   */
  readonly name: string;
  /**
   * Returns the name of one of the table's indexes, for `IndexName`.
   *
   * @throws Error if the table declares no such index.
   */
  readonly index: (name: Index) => string;
}

/** keelson's table of configuration rows. */
export const configTable: TableDeclaration = ownTable("config");

/** keelson's table of claims. DynamoDB's time to live deletes expired claims. */
export const onceTable: TableDeclaration = ownTable("once", "expiration");

/** keelson's table of events that wait for dispatch. */
export const outboxTable: TableDeclaration = ownTable("outbox");

/** keelson's table of kept events and of the state of projections. Keys start with their tenant. */
export const keptEventsTable: TableDeclaration = Object.freeze({
  ...ownTable("kept-events", "expiration"),
  tenant: true,
});

/** Names that a feature cannot declare, because its handlers would reach keelson's tables. */
export const reservedTables: readonly string[] = Object.freeze([
  "config",
  "once",
  "outbox",
  "kept-events",
]);

/**
 * Returns the physical name of a table: `KEELSON_TABLE_<NAME>`, or `<prefix>-<name>` without that
 * variable.
 */
export function physicalTableName(name: string, prefix: string, variables: Variables): string {
  return variables[tableVariable(name)] || `${prefix}-${name}`;
}

/** Returns the environment variable that overrides the physical name of a table. */
export function tableVariable(name: string): string {
  return `KEELSON_TABLE_${name.toUpperCase().replaceAll("-", "_")}`;
}

function ownTable(name: string, timeToLive?: string): TableDeclaration {
  const expiring = timeToLive === undefined ? {} : { timeToLive };
  return Object.freeze({ name, partitionKey: "pk", sortKey: "sk", ...expiring, indexes: [] });
}
