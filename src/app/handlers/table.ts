import { isRecord, type Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { User } from "../../base/identity/access.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { Database } from "../../base/types/database.ts";
import { defined } from "../../base/types/defined.ts";
import {
  isWord,
  knownOptions,
  problemsOf,
  type Requirements,
  required,
  requireOptions,
} from "./requirements.ts";

/** Source of a key's tenant: a `ctx` or, for `ctx.acrossTenants`, an object that names a tenant. */
export interface TenantOf {
  readonly user: Pick<User, "tenantId">;
}

/** Options of a table. */
export interface TableOptions<
  Index extends string = string,
  Partition extends string = string,
  Sort extends string = string,
  Tenant extends boolean = boolean,
> {
  /** Attribute that is the partition key, a string. */
  readonly partitionKey: Partition;
  /** Attribute that is the sort key, a string. Default: none. */
  readonly sortKey?: Sort;
  /**
   * With `true`, each row belongs to a tenant: `table.key` makes keys that start with it, and
   * `ctx.db` and `ctx.commit` reach only the rows of the caller's tenant. With `false`, every
   * handler reaches every row.
   */
  readonly tenant: Tenant;
  /** Global secondary indexes by name. Default: none. */
  readonly indexes?: Readonly<Record<Index, IndexOptions>>;
}

/** A global secondary index. It omits items that lack one of its keys. */
export interface IndexOptions {
  /** Attribute that is the partition key of the index, a string. */
  readonly partitionKey: string;
  /** Attribute that is the sort key of the index, a string. Default: none. */
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
  /**
   * Reads a page of the items of one partition, in the order of the sort key. Only reads of an index
   * are not strongly consistent.
   * @throws ValidationError (422) that names `cursor`, for a cursor that this list has not given;
   * TypeError and RangeError for wrong options; Error if no handler is running.
   * @example
   * const { items, cursor } = await table.page(ctx, { partition: "files", limit: 20 });
   */
  readonly page: (
    ctx: TenantOf & { readonly db: Database },
    options: PageOptions<Index>,
  ) => Promise<TablePage>;
}

/** Options of `table.page`. */
export interface PageOptions<Index extends string = string> {
  /** Partition, as in `table.key`, or for an index as in `table.value`. */
  readonly partition: string;
  /** Prefix of the sort key. Default: all items of the partition. */
  readonly beginsWith?: string;
  /** Index to read. Default: the table. */
  readonly index?: Index;
  /** Whether the last items come first. Default `false`. */
  readonly descending?: boolean;
  /** Maximum number of items, from 1 to 1,000. */
  readonly limit: number;
  /** The `cursor` of the previous page. Default: the first page. */
  readonly cursor?: string | undefined;
}

/** Result of `table.page`. */
export interface TablePage {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  /**
   * Opaque position after the last item, for the next page of the same tenant and query. Absent on
   * the last page. Encrypted if the server has a key ring.
   */
  readonly cursor?: string;
}

export const configTable: TableDeclaration = ownTable("config");

/** Table of claims. */
export const onceTable: TableDeclaration = ownTable("once", "expiration");

/** Table of messages that wait for dispatch. */
export const outboxTable: TableDeclaration = ownTable("outbox");

/** Table of kept events and of the state of projections. */
export const keptEventsTable: TableDeclaration = Object.freeze({
  ...ownTable("kept-events", "expiration"),
  tenant: true,
});

/** Tables whose names no feature can declare, because its handlers would reach them. */
const ownTables = [configTable, onceTable, outboxTable, keptEventsTable];

export function physicalTableName(name: string, prefix: string, variables: Variables): string {
  return variables[tableVariable(name)] || `${prefix}-${name}`;
}

export function tableVariable(name: string): `KEELSON_TABLE_${string}` {
  return `KEELSON_TABLE_${name.toUpperCase().replaceAll("-", "_")}`;
}

function ownTable(name: string, timeToLive?: string): TableDeclaration {
  const keys = { partitionKey: "pk", sortKey: "sk" };
  return Object.freeze({ name, ...keys, ...defined({ timeToLive }), indexes: [] });
}

/** DynamoDB's limits: indexes per table, projected attributes per index and per table. */
const [mostIndexes, mostProjected, mostProjectedInAll] = [20, 20, 100];

const tableRequirements: Requirements = {
  tenant: required({
    accepts: (tenant) => typeof tenant === "boolean",
    rule: "table-tenant",
    wrong: (tenant) => (tenant === undefined ? "is missing" : `is ${quoted(tenant)}`),
    fix: "use true if each row belongs to a tenant, false if every handler may reach every row",
  }),
  indexes: {
    accepts: isRecord,
    rule: "table-indexes",
    wrong: "is not an object of indexes by name",
    fix: 'pass indexes: { byOwner: { partitionKey: "owner", sortKey: "createdAt" } }',
  },
};

export function table(name: string, options: unknown, report: Report): TableDeclaration {
  const key = `table ${name}`;
  const problem = problemsOf(key, report);
  const known = ["partitionKey", "sortKey", "tenant", "indexes"];
  const given = knownOptions(key, options, known, report);
  const { partitionKey, sortKey, tenant, indexes } = given;
  if (!isWord(name)) {
    const fix = "name it with lower-case letters, digits and hyphens, beginning with a letter";
    problem("table-name", `table name ${JSON.stringify(name)} is not in kebab case`, fix);
  }
  if (ownTables.some((own) => own.name === name)) {
    const message = `table name ${JSON.stringify(name)} is keelson's own`;
    problem("table-reserved", message, "choose another name");
  }
  if (!areKeys(partitionKey, sortKey)) {
    const fix = 'name the attributes, for example { partitionKey: "pk", sortKey: "sk" }';
    problem("table-keys", notKeys, fix);
  }
  requireOptions(given, tableRequirements, problem);
  const keys = keysOf(partitionKey, sortKey);
  return {
    name: String(name),
    ...keys,
    ...(tenant === true ? { tenant } : {}),
    indexes: isRecord(indexes) ? indexesOf(key, keys, indexes, report) : [],
  };
}

type Keys = Pick<TableDeclaration, "partitionKey" | "sortKey">;

const notKeys = "`partitionKey` and `sortKey` are not two attribute names";

function indexesOf(
  tableKey: string,
  tableKeys: Keys,
  given: Readonly<Record<string, unknown>>,
  report: Report,
): IndexDeclaration[] {
  const indexes = Object.entries(given).map(([name, options]) =>
    index(`${tableKey} index ${name}`, tableKeys, name, options, report),
  );
  const atMost = (what: string, count: number, most: number) => {
    const message = `it has ${count} ${what}, and DynamoDB allows a table ${most}`;
    const fix = "declare fewer, or move some to another table";
    if (count > most) report({ key: tableKey, rule: "table-indexes", message, fix });
  };
  atMost("indexes", indexes.length, mostIndexes);
  const projected = indexes.reduce((sum, { project = [] }) => sum + project.length, 0);
  atMost("attributes in the `project` of its indexes", projected, mostProjectedInAll);
  return indexes;
}

function index(
  key: string,
  tableKeys: Keys,
  name: string,
  options: unknown,
  report: Report,
): IndexDeclaration {
  const problem = problemsOf(key, report);
  const known = ["partitionKey", "sortKey", "project"];
  const { partitionKey, sortKey, project } = knownOptions(key, options, known, report);
  if (!/^[A-Za-z0-9_.-]{3,255}$/.test(name)) {
    const fix = "name it with 3 to 255 letters, digits, `_`, `.` and `-`, for example byOwner";
    problem("index-name", `DynamoDB does not accept the index name ${quoted(name)}`, fix);
  }
  const keys = keysOf(partitionKey, sortKey);
  if (!areKeys(partitionKey, sortKey)) {
    const fix = 'name the attributes, for example { partitionKey: "owner", sortKey: "createdAt" }';
    problem("index-keys", notKeys, fix);
  } else if (keys.partitionKey === tableKeys.partitionKey && keys.sortKey === tableKeys.sortKey) {
    const fix = "query the table itself, or lead the index by another attribute";
    problem("index-keys", "its keys are the table's own", fix);
  }
  if (project === undefined) return { name, ...keys, project };
  if (!Array.isArray(project) || !project.every(isAttributeName)) {
    const fix =
      'list the attributes that queries of the index read, for example ["size"]; without `project` it has all';
    problem("index-project", "`project` is not a list of attribute names", fix);
    return { name, ...keys, project: [] };
  }
  const ownKeys = [tableKeys.partitionKey, tableKeys.sortKey, keys.partitionKey, keys.sortKey];
  const attributes = [...new Set(project)].filter((attribute) => !ownKeys.includes(attribute));
  if (attributes.length > mostProjected) {
    const message = `\`project\` has ${attributes.length} attributes, and DynamoDB allows an index ${mostProjected}`;
    problem("index-project", message, "list fewer, or leave `project` out to have all");
  }
  return { name, ...keys, project: attributes };
}

function areKeys(partitionKey: unknown, sortKey: unknown): boolean {
  return (
    isAttributeName(partitionKey) &&
    (sortKey === undefined || (isAttributeName(sortKey) && sortKey !== partitionKey))
  );
}

function keysOf(partitionKey: unknown, sortKey: unknown): Keys {
  return {
    partitionKey: String(partitionKey),
    sortKey: sortKey === undefined ? undefined : String(sortKey),
  };
}

function isAttributeName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 255;
}
