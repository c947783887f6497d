import { setTimeout as sleep } from "node:timers/promises";
import type {
  GlobalSecondaryIndex,
  KeySchemaElement,
  TableDescription,
} from "@aws-sdk/client-dynamodb";
import type { IndexDeclaration, TableDeclaration } from "../../app/handlers/table.ts";
import type { Database } from "../../base/types/database.ts";

export interface RequiredTable extends TableDeclaration {
  readonly tableName: string;
}

export type Keyed = Pick<IndexDeclaration, "partitionKey" | "sortKey">;

/** Timeout for all indexes of a table, and time between checks, in milliseconds. */
const [patienceMs, pauseMs] = [60_000, 100];

interface IndexFault {
  readonly kind: "missing" | "keys" | "projection" | "extra" | "status";
  readonly message: string;
}

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
  const { IndexStatus: status } = has;
  if (status === "CREATING" || status === "DELETING") {
    const yet = status === "CREATING" ? " yet" : "";
    return { kind: "status", message: `it is ${status}, so it cannot be queried${yet}` };
  }
  return projection;
}

export function shownKeys(keyed: Keyed): string {
  return attributesOf(keyed)
    .map((key) => `${key} (S)`)
    .join(", ");
}

export function attributesOf({ partitionKey, sortKey }: Keyed): readonly string[] {
  return sortKey === undefined ? [partitionKey] : [partitionKey, sortKey];
}

export function keySchema(keyed: Keyed): KeySchemaElement[] {
  return attributesOf(keyed).map((AttributeName, index) => ({
    AttributeName,
    KeyType: index === 0 ? "HASH" : "RANGE",
  }));
}

export function attributeDefinitions(
  ...keyed: readonly Keyed[]
): { AttributeName: string; AttributeType: "S" }[] {
  return [...new Set(keyed.flatMap(attributesOf))].map((AttributeName) => ({
    AttributeName,
    AttributeType: "S",
  }));
}

export function indexDescription(index: IndexDeclaration): GlobalSecondaryIndex {
  return { IndexName: index.name, KeySchema: keySchema(index), Projection: projectionOf(index) };
}

/** Creates missing indexes one by one, as DynamoDB requires, and waits until all can be queried. */
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
    if (next === undefined) return {}; // the table was deleted, so it lacks every index
    now = next;
    // An error may mean that another process creates the index, in which case the index appears.
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

/** DynamoDB changes one index at a time. */
function isChanging({
  TableStatus,
  GlobalSecondaryIndexes: indexes = [],
}: TableDescription): boolean {
  return TableStatus !== "ACTIVE" || indexes.some(({ IndexStatus }) => IndexStatus !== "ACTIVE");
}

function projectionOf({ project }: IndexDeclaration): GlobalSecondaryIndex["Projection"] {
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
  const { project } = index;
  if (project === undefined) {
    if (isAll) return undefined;
    const what = given.length === 0 ? "its keys alone" : given.join(", ");
    return { kind: "projection", message: `it projects ${what}, not all attributes` };
  }
  const lacks = isAll ? [] : project.filter((attribute) => !given.includes(attribute));
  if (lacks.length > 0)
    return { kind: "projection", message: `it does not project ${lacks.join(", ")}` };
  const more = given.filter((attribute) => !project.includes(attribute));
  if (!isAll && more.length === 0) return undefined;
  const what = isAll ? "all attributes" : more.join(", ");
  return { kind: "extra", message: `it projects ${what}, more than is declared` };
}
