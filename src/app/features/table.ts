import type { Variables } from "../../base/process/environment.ts";

/** What a table is declared with. */
export interface TableOptions<
  Index extends string = string,
  Partition extends string = string,
  Sort extends string = string,
  Tenant extends boolean = boolean,
> {
  /** The attribute of the partition key, a string. */
  readonly partitionKey: Partition;
  /** The attribute of the sort key, a string. Default: none. */
  readonly sortKey?: Sort;
  /**
   * Whether each row begins with its tenant: `table.key` makes the keys, and no command of `ctx.db` and `ctx.commit` reaches
   * another tenant's rows. Default `false`.
   */
  readonly tenant?: Tenant;
  /** The table's global secondary indexes, by name. Default: none. */
  readonly indexes?: Readonly<Record<Index, IndexOptions>>;
}

/** What a global secondary index is declared with. Items without one of its keys are not in it. */
export interface IndexOptions {
  /** The attribute of the index's partition key, a string. */
  readonly partitionKey: string;
  /** The attribute of the index's sort key, a string. Default: none. */
  readonly sortKey?: string;
  /** The attributes that the index has beside all keys. `[]`: the keys alone. Default: all of the item. */
  readonly project?: readonly string[];
}

/** A DynamoDB table that a feature declares. Its key attributes are strings, and so are those of its indexes. */
export interface TableDeclaration {
  /** The logical name: `files`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** The attribute by which DynamoDB deletes items, in seconds since the epoch. */
  readonly timeToLive?: string;
  /** Whether rows begin with their tenant. */
  readonly tenant?: true;
  /** In the order of their declaration. */
  readonly indexes: readonly IndexDeclaration[];
}

/** A global secondary index of a declared table. */
export interface IndexDeclaration {
  /** The name in DynamoDB as well: `byOwner`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** The attributes it has beside the keys of the table and its own, each once; `undefined`: all. */
  readonly project: readonly string[] | undefined;
}

/** A declared table as a handler uses it. */
export interface TableHandle<Index extends string = never> {
  /**
   * The physical name: `KEELSON_TABLE_<NAME>`, else `<prefix>-<name>`.
   *
   * @throws Error outside of a request, because the name depends on the server.
   */
  readonly name: string;
  /**
   * The name of one of the table's indexes, for `IndexName`.
   *
   * @throws Error if the table declares no such index.
   */
  readonly index: (name: Index) => string;
}

/** keelson's own table of configuration rows. */
export const configTable: TableDeclaration = ownTable("config");

/** keelson's own table of claims; DynamoDB's time to live deletes what has expired. */
export const onceTable: TableDeclaration = ownTable("once", "expiration");

/** keelson's own table of events that wait to be dispatched. */
export const outboxTable: TableDeclaration = ownTable("outbox");

/** keelson's own table of kept events, and of what is known of projections: rows of a tenant begin with it. */
export const keptEventsTable: TableDeclaration = Object.freeze({
  ...ownTable("kept-events", "expiration"),
  tenant: true,
});

/** Names that a feature cannot declare: its handlers would reach into keelson's own tables. */
export const reservedTables: readonly string[] = Object.freeze([
  "config",
  "once",
  "outbox",
  "kept-events",
]);

/** The physical name of a table: `KEELSON_TABLE_<NAME>`, else `<prefix>-<name>`. */
export function physicalTableName(name: string, prefix: string, variables: Variables): string {
  return variables[tableVariable(name)] || `${prefix}-${name}`;
}

/** The environment variable that names a table's physical table. */
export function tableVariable(name: string): string {
  return `KEELSON_TABLE_${name.toUpperCase().replaceAll("-", "_")}`;
}

function ownTable(name: string, timeToLive?: string): TableDeclaration {
  const expiring = timeToLive === undefined ? {} : { timeToLive };
  return Object.freeze({ name, partitionKey: "pk", sortKey: "sk", ...expiring, indexes: [] });
}
