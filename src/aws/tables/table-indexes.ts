import { setTimeout as sleep } from "node:timers/promises";
import type {
  GlobalSecondaryIndex,
  KeySchemaElement,
  TableDescription,
} from "@aws-sdk/client-dynamodb";
import type { IndexDeclaration } from "../../app/features/table.ts";
import type { Database } from "../../base/types/database.ts";
import type { RequiredTable } from "./required-table.ts";

/** What has a key: a table or an index. */
export type Keyed = Pick<IndexDeclaration, "partitionKey" | "sortKey">;

/** How long all indexes of a table may take to be created, and between two looks, in milliseconds. */
const [patienceMs, pauseMs] = [60_000, 100];

/** How an index differs from its declaration, and in words. `extra` takes space alone. */
export interface IndexFault {
  readonly kind: "missing" | "keys" | "projection" | "extra" | "status";
  readonly message: string;
}

/** What is wrong with a declared index in the description of its table. */
export function indexFault(
  index: IndexDeclaration,
  table: Keyed,
  found: TableDescription,
): IndexFault | undefined {
  const { GlobalSecondaryIndexes: indexes = [], AttributeDefinitions: definitions = [] } = found;
  const has = indexes.find(({ IndexName }) => IndexName === index.name);
  if (has === undefined) return { kind: "missing", message: "it does not exist" };
  const types = new Map(
    definitions.map(({ AttributeName, AttributeType }) => [AttributeName, AttributeType]),
  );
  const keys = (has.KeySchema ?? [])
    .map(({ AttributeName }) => `${AttributeName} (${types.get(AttributeName)})`)
    .join(", ");
  const wanted = shownKeys(index);
  if (keys !== wanted) return { kind: "keys", message: `its keys are ${keys}, not ${wanted}` };
  const projection = projectionFault(index, table, has.Projection);
  if (projection?.kind === "projection") return projection;
  if (has.IndexStatus === "CREATING" || has.IndexStatus === "DELETING") {
    const message = `it is ${has.IndexStatus}, so it cannot be queried${has.IndexStatus === "CREATING" ? " yet" : ""}`;
    return { kind: "status", message };
  }
  return projection;
}

/** The keys of a table or an index in words, with their types. */
export function shownKeys(keyed: Keyed): string {
  return attributesOf(keyed)
    .map((key) => `${key} (S)`)
    .join(", ");
}

/** The attributes of a key. */
export function attributesOf({ partitionKey, sortKey }: Keyed): readonly string[] {
  return sortKey === undefined ? [partitionKey] : [partitionKey, sortKey];
}

/** The key schema of a table or an index. */
export function keySchema(keyed: Keyed): KeySchemaElement[] {
  return attributesOf(keyed).map((AttributeName, index) => ({
    AttributeName,
    KeyType: index === 0 ? "HASH" : "RANGE",
  }));
}

/** The definitions of the key attributes of tables and indexes, each once. */
export function attributeDefinitions(
  ...keyed: readonly Keyed[]
): { AttributeName: string; AttributeType: "S" }[] {
  return [...new Set(keyed.flatMap(attributesOf))].map((AttributeName) => ({
    AttributeName,
    AttributeType: "S",
  }));
}

/** An index as DynamoDB creates it. */
export function indexDescription(index: IndexDeclaration): GlobalSecondaryIndex {
  return { IndexName: index.name, KeySchema: keySchema(index), Projection: projectionOf(index) };
}

/**
 * Creates the indexes that a table lacks, one after the other as DynamoDB demands, and waits until all can be queried, also
 * where another process creates them. Resolves to the table as it is then.
 */
export async function createIndexes(
  database: Database,
  table: RequiredTable,
  found: TableDescription,
  describe: () => Promise<TableDescription | undefined>,
): Promise<TableDescription> {
  const endMs = performance.now() + patienceMs;
  const first = (kind: IndexFault["kind"], seen: TableDescription) =>
    table.indexes.find((index) => indexFault(index, table, seen)?.kind === kind);
  let now = found;
  while (performance.now() < endMs) {
    const missing = first("missing", now);
    if (missing === undefined && first("status", now) === undefined) break;
    const failure =
      missing === undefined || isChanging(now) ? undefined : await create(database, table, missing);
    if (failure === undefined) await sleep(pauseMs);
    const next = await describe();
    if (next === undefined) return {}; // deleted meanwhile, and so it lacks every index
    now = next;
    // Where another process created it in between, or is at it, DynamoDB says so in several ways.
    if (failure !== undefined && !isChanging(now) && first("missing", now) === missing)
      throw failure;
  }
  return now;
}

async function create(
  database: Database,
  table: RequiredTable,
  index: IndexDeclaration,
): Promise<unknown> {
  const { UpdateTableCommand } = await import("@aws-sdk/client-dynamodb");
  const command = new UpdateTableCommand({
    TableName: table.tableName,
    AttributeDefinitions: attributeDefinitions(table, index),
    GlobalSecondaryIndexUpdates: [{ Create: indexDescription(index) }],
  });
  try {
    await database.send(command);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** DynamoDB changes one index of a table at a time. */
function isChanging({
  TableStatus,
  GlobalSecondaryIndexes: indexes = [],
}: TableDescription): boolean {
  return TableStatus !== "ACTIVE" || indexes.some(({ IndexStatus }) => IndexStatus !== "ACTIVE");
}

function projectionOf({
  project,
}: IndexDeclaration): NonNullable<GlobalSecondaryIndex["Projection"]> {
  if (project === undefined) return { ProjectionType: "ALL" };
  return project.length === 0
    ? { ProjectionType: "KEYS_ONLY" }
    : { ProjectionType: "INCLUDE", NonKeyAttributes: [...project] };
}

function projectionFault(
  index: IndexDeclaration,
  table: Keyed,
  has: GlobalSecondaryIndex["Projection"],
): IndexFault | undefined {
  const keys = [...attributesOf(table), ...attributesOf(index)];
  const given = (has?.NonKeyAttributes ?? []).filter((attribute) => !keys.includes(attribute));
  const isAll = has?.ProjectionType === "ALL";
  if (index.project === undefined) {
    if (isAll) return undefined;
    const message = `it projects ${given.length === 0 ? "its keys alone" : given.join(", ")}, not all attributes`;
    return { kind: "projection", message };
  }
  const lacks = isAll ? [] : index.project.filter((attribute) => !given.includes(attribute));
  if (lacks.length > 0)
    return { kind: "projection", message: `it does not project ${lacks.join(", ")}` };
  const more = given.filter((attribute) => !index.project?.includes(attribute));
  if (!isAll && more.length === 0) return undefined;
  return {
    kind: "extra",
    message: `it projects ${isAll ? "all attributes" : more.join(", ")}, more than is declared`,
  };
}
