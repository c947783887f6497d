import { ambientStore } from "../context/ambient.ts";
import type { Variables } from "../process/environment.ts";

/** A DynamoDB table that a feature declares. Both key attributes are strings. */
export interface TableDeclaration {
  /** The logical name: `files`. */
  readonly name: string;
  readonly partitionKey: string;
  readonly sortKey: string | undefined;
  /** The attribute by which DynamoDB deletes items, in seconds since the epoch. */
  readonly timeToLive?: string;
}

/** A declared table as a handler uses it. */
export interface TableHandle {
  /**
   * The physical name: `KEELSON_TABLE_<NAME>`, else `<prefix>-<name>`.
   *
   * @throws Error outside of a request, because the name depends on the server.
   */
  readonly name: string;
}

/** keelson's own table of configuration rows. */
export const configTable: TableDeclaration = Object.freeze({ name: "config", partitionKey: "pk", sortKey: "sk" });

/** keelson's own table of claims; DynamoDB's time to live deletes what has expired. */
export const onceTable: TableDeclaration = Object.freeze({
  name: "once",
  partitionKey: "pk",
  sortKey: "sk",
  timeToLive: "expiration",
});

/** keelson's own table of events that wait to be dispatched. */
export const outboxTable: TableDeclaration = Object.freeze({ name: "outbox", partitionKey: "pk", sortKey: "sk" });

/** Names that a feature cannot declare: its handlers would reach into keelson's own tables. */
export const reservedTables: readonly string[] = Object.freeze(["config", "once", "outbox"]);

export function tableHandle(name: string): TableHandle {
  return Object.freeze({
    get name(): string {
      const store = ambientStore();
      if (store === undefined) {
        throw new Error(
          `table "${name}": its physical name is known only while a handler runs; read \`.name\` inside the handler`,
        );
      }
      return store.runtime.tableName(name);
    },
  });
}

/** Creates what knows the physical names of a server's tables, for its requests. */
export function tableNames(prefix: string, variables: Variables): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const physical = known.get(name) ?? physicalTableName(name, prefix, variables);
    known.set(name, physical);
    return physical;
  };
}

/** The physical name of a table: `KEELSON_TABLE_<NAME>`, else `<prefix>-<name>`. */
export function physicalTableName(name: string, prefix: string, variables: Variables): string {
  return variables[tableVariable(name)] || `${prefix}-${name}`;
}

/** The environment variable that names a table's physical table. */
export function tableVariable(name: string): string {
  return `KEELSON_TABLE_${name.toUpperCase().replaceAll("-", "_")}`;
}
