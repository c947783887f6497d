import { createHash } from "node:crypto";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { ValidationError } from "../../base/errors/errors.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { CursorSecrets } from "../../base/request/ambient.ts";
import type { Database } from "../../base/types/database.ts";
import { tenantValue } from "../../parts/wall/tenant-keys.ts";
import type {
  IndexDeclaration,
  PageOptions,
  TableDeclaration,
  TablePage,
  TenantOf,
} from "./table.ts";

type Item = Readonly<Record<string, unknown>>;

export interface PageParts {
  readonly table: TableDeclaration;
  readonly physicalName: string;
  readonly secrets: CursorSecrets;
}

const optionNames = ["partition", "beginsWith", "index", "descending", "limit", "cursor"];
const mostItems = 1_000;
/** Longer than any cursor: the keys of a table, and of an index, have up to 3,072 bytes each. */
const longestCursor = 20_000;

/** Implements `TableHandle.page`, which documents the errors. */
export async function readPage(
  { table, physicalName, secrets }: PageParts,
  ctx: TenantOf & { readonly db: Database },
  options: PageOptions<string>,
): Promise<TablePage> {
  const query = queryOf(table, ctx, options);
  const { keys, partition, beginsWith, index, descending, limit } = query;
  const cursors = createCursors(secrets, placeOf(table, ctx, query));
  let start =
    options.cursor === undefined ? undefined : await startOf(cursors, query, options.cursor);
  const items: Item[] = [];
  do {
    const { Items = [], LastEvaluatedKey }: Awaited<ReturnType<typeof send>> = await send(ctx.db, {
      TableName: physicalName,
      ...(index && { IndexName: index.name }),
      KeyConditionExpression:
        beginsWith === undefined ? "#p = :p" : "#p = :p AND begins_with(#s, :s)",
      ExpressionAttributeNames: {
        "#p": keys.partitionKey,
        ...(beginsWith !== undefined && { "#s": String(keys.sortKey) }),
      },
      ExpressionAttributeValues: {
        ":p": partition,
        ...(beginsWith !== undefined && { ":s": beginsWith }),
      },
      ScanIndexForward: !descending,
      // One more item shows whether there is another page.
      Limit: limit + 1 - items.length,
      ...(start && { ExclusiveStartKey: start }),
      ConsistentRead: index === undefined,
    });
    items.push(...Items);
    start = LastEvaluatedKey;
  } while (start !== undefined && items.length <= limit);
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  if (items.length <= limit || last === undefined) return { items: shown };
  return { items: shown, cursor: await cursors.write(query.places.map((name) => last[name])) };
}

function send(db: Database, input: QueryCommand["input"]) {
  return db.send(new QueryCommand(input));
}

interface PageQuery {
  readonly keys: Pick<TableDeclaration, "partitionKey" | "sortKey">;
  readonly partition: string;
  readonly beginsWith: string | undefined;
  readonly index: IndexDeclaration | undefined;
  readonly descending: boolean;
  readonly limit: number;
  /** Attributes of a position, besides the partition key of the query. */
  readonly places: readonly string[];
  /** Whether an attribute of a position may have a value. */
  readonly fits: (name: string, value: string) => boolean;
}

function queryOf(table: TableDeclaration, ctx: TenantOf, options: PageOptions<string>): PageQuery {
  const what = `table ${quoted(table.name)}: page`;
  assertKnownOptions(what, options, optionNames);
  const { partition, index: indexName, descending = false, limit } = options;
  const beginsWith = options.beginsWith || undefined; // DynamoDB refuses an empty prefix
  const index = table.indexes.find(({ name }) => name === indexName);
  if (indexName !== undefined && index === undefined)
    throw new TypeError(`${what}: no index ${quoted(indexName)}`);
  const keys = index ?? table;
  if (typeof partition !== "string")
    throw new TypeError(`${what}: the partition is ${quoted(partition)}, not a string`);
  if (beginsWith !== undefined && (typeof beginsWith !== "string" || keys.sortKey === undefined))
    throw new TypeError(
      `${what}: beginsWith takes a string, and a table or an index with a sort key`,
    );
  if (!Number.isInteger(limit) || limit < 1 || limit > mostItems)
    throw new RangeError(`${what}: the limit is ${quoted(limit)}; use 1 to ${mostItems}`);
  const isTenant = table.tenant === true;
  // A sort key that is also the partition key of the table or an index starts with the tenant, too.
  const isLed =
    isTenant && [table, ...table.indexes].some((one) => one.partitionKey === keys.sortKey);
  const withTenant = (text: string) => tenantValue(table, ctx.user.tenantId, text);
  const prefix = isTenant ? withTenant("") : "";
  const attributes = [keys.sortKey, table.partitionKey, table.sortKey].filter(
    (name) => name !== undefined && name !== keys.partitionKey,
  ) as string[]; // safe: `filter` removes undefined
  return {
    keys,
    partition: isTenant ? withTenant(partition) : partition,
    beginsWith: beginsWith !== undefined && isLed ? withTenant(beginsWith) : beginsWith,
    index,
    descending: descending === true,
    limit,
    places: [...new Set(attributes)],
    fits: (name, value) => {
      const isPartition = name === table.partitionKey;
      if (isPartition && !value.startsWith(prefix)) return false;
      return value !== "" && Buffer.byteLength(value) <= (isPartition ? 2_048 : 1_024);
    },
  };
}

/** Binds a cursor to its tenant, table and query. */
function placeOf(table: TableDeclaration, ctx: TenantOf, query: PageQuery): readonly string[] {
  const { partition, beginsWith, index, descending } = query;
  const { tenantId } = ctx.user;
  return [
    "keelson.cursor",
    table.name,
    index?.name ?? "",
    tenantId === undefined ? "" : `=${tenantId}`,
    partition,
    beginsWith ?? "",
    descending ? "descending" : "ascending",
  ];
}

/**
 * Reads the position of a cursor. A client can forge one without a key ring, so neither the wall nor
 * DynamoDB may have to refuse it.
 *
 * @throws ValidationError for a cursor that this query has not given.
 */
async function startOf(
  cursors: Cursors,
  { keys, partition, beginsWith, places, fits }: PageQuery,
  cursor: unknown,
): Promise<Readonly<Record<string, string>>> {
  const position = typeof cursor === "string" ? await cursors.read(cursor) : undefined;
  if (position?.length !== places.length) throw notOurs();
  const key: Record<string, string> = { [keys.partitionKey]: partition };
  for (const [at, name] of places.entries()) {
    const value = position[at];
    if (typeof value !== "string" || !fits(name, value)) throw notOurs();
    key[name] = value;
  }
  const sort = keys.sortKey === undefined ? undefined : key[keys.sortKey];
  if (beginsWith !== undefined && sort?.startsWith(beginsWith) !== true) throw notOurs();
  return key;
}

function notOurs(): ValidationError {
  return new ValidationError([{ field: "cursor", error: "must be one that this list has given" }]);
}

interface Cursors {
  write(position: readonly unknown[]): Promise<string>;
  /** Returns `undefined` for any other text. */
  read(cursor: string): Promise<readonly unknown[] | undefined>;
}

/** With a key ring, cursors are encrypted; without one, they only show a change. */
function createCursors(secrets: CursorSecrets, place: readonly string[]): Cursors {
  const proofOf = (text: string) =>
    createHash("sha256")
      .update(JSON.stringify([place, text]))
      .digest("base64url")
      .slice(0, 22);
  return {
    write: async (position) => {
      const text = JSON.stringify(position);
      if (!secrets.mayHaveRing()) return encoded([proofOf(text), text]);
      const { key, data } = await secrets.sealPassing(text, place);
      return encoded([key, Buffer.from(data).toString("base64url"), "sealed"]);
    },
    read: async (cursor) => {
      const [first, second, kind] = decoded(cursor) ?? [];
      if (typeof first !== "string" || typeof second !== "string") return undefined;
      if (!secrets.mayHaveRing())
        return kind === undefined && proofOf(second) === first ? positionOf(second) : undefined;
      if (kind !== "sealed") return undefined;
      await secrets.prepare(first);
      const data = Buffer.from(second, "base64url");
      const opened = secrets.open({ sealed: 1, key: first, data }, place);
      return "text" in opened ? positionOf(opened.text) : undefined;
    },
  };
}

function encoded(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function decoded(cursor: string): readonly unknown[] | undefined {
  if (cursor.length > longestCursor || !/^[\w-]+$/.test(cursor)) return undefined;
  return positionOf(Buffer.from(cursor, "base64url").toString("utf8"));
}

function positionOf(text: string): readonly unknown[] | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : undefined;
  } catch {
    return undefined;
  }
}
