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

const another = "; an index cannot be changed, so declare it under another name";
const remedies = { missing: "; deploy it", keys: another, projection: another, status: "" };

/**
 * Creates tables and indexes in an emulator; checks them on AWS, where the deployment creates them.
 * @throws Error that names every wrong table.
 */
export async function ensureTables(
  database: Database,
  tables: readonly RequiredTable[],
  mode: "create" | "check",
): Promise<void> {
  const problems = await Promise.all(tables.map((table) => ensureTable(database, table, mode)));
  const found = problems.filter((problem) => problem !== undefined);
  if (found.length > 0) throw new Error(`the store is not ready: ${found.join("; ")}`);
}

async function ensureTable(
  database: Database,
  table: RequiredTable,
  mode: "create" | "check",
): Promise<string | undefined> {
  const sdk = await import("@aws-sdk/client-dynamodb");
  const { tableName, timeToLive } = table;
  const describe = async () => {
    try {
      const command = new sdk.DescribeTableCommand({ TableName: tableName });
      return (await database.send(command)).Table;
    } catch (error) {
      if (error instanceof sdk.ResourceNotFoundException) return undefined;
      throw error;
    }
  };
  let found = await describe();
  if (mode === "check" && found === undefined)
    return `table ${tableName} does not exist; deploy it, or set KEELSON_TABLE_${table.name.toUpperCase().replaceAll("-", "_")}`;
  if (mode === "create" && found?.TableStatus !== "ACTIVE") {
    await createTable(database, table, found === undefined);
    // Checked as well, because another process may have created the table.
    found = await describe();
  }
  const has = (found?.KeySchema ?? []).map(({ AttributeName }) => AttributeName).join(", ");
  const wanted = attributesOf(table).join(", ");
  if (has !== wanted) return `table ${tableName} has the keys ${has}, not ${wanted}`;
  // Safe: a missing table has no keys and was reported above.
  let description = found as TableDescription;
  if (mode === "create") description = await createIndexes(database, table, description, describe);
  const wrong = table.indexes.flatMap((index) => {
    const fault = indexFault(index, table, description);
    return fault === undefined || fault.kind === "extra"
      ? []
      : [`index ${index.name}: ${fault.message}${remedies[fault.kind]}`];
  });
  if (wrong.length > 0) return `table ${tableName}: ${wrong.join(", ")}`;
  return mode === "create" && timeToLive !== undefined
    ? ensureTimeToLive(database, tableName, timeToLive)
    : undefined;
}

async function createTable(
  database: Database,
  table: RequiredTable,
  isMissing: boolean,
): Promise<void> {
  const sdk = await import("@aws-sdk/client-dynamodb");
  const TableName = table.tableName;
  const indexes = table.indexes.map(indexDescription);
  const command = new sdk.CreateTableCommand({
    TableName,
    KeySchema: keySchema(table),
    AttributeDefinitions: attributeDefinitions(table, ...table.indexes),
    BillingMode: "PAY_PER_REQUEST",
    GlobalSecondaryIndexes: indexes.length === 0 ? undefined : indexes,
  });
  try {
    if (isMissing) await database.send(command);
  } catch (error) {
    if (!(error instanceof sdk.ResourceInUseException)) throw error;
  }
  const patience = { client: database, maxWaitTime: 60, minDelay: 1, maxDelay: 2 };
  await sdk.waitUntilTableExists(patience, { TableName });
}

/** Enables expiry also for an existing table: its creator may have died before it did so. */
async function ensureTimeToLive(
  database: Database,
  tableName: string,
  attribute: string,
): Promise<string | undefined> {
  const sdk = await import("@aws-sdk/client-dynamodb");
  const TableName = tableName;
  const enabled = async () => {
    const command = new sdk.DescribeTimeToLiveCommand({ TableName });
    const { TimeToLiveDescription: { TimeToLiveStatus = "DISABLED", AttributeName } = {} } =
      await database.send(command);
    return ["ENABLED", "ENABLING"].includes(TimeToLiveStatus) ? AttributeName : undefined;
  };
  let has = await enabled();
  if (has === undefined) {
    const TimeToLiveSpecification = { AttributeName: attribute, Enabled: true };
    try {
      const change = { TableName, TimeToLiveSpecification };
      await database.send(new sdk.UpdateTimeToLiveCommand(change));
      return undefined;
    } catch (error) {
      // Another process may have enabled it, which DynamoDB reports as a ValidationException too.
      has = await enabled();
      if (has === undefined) throw error;
    }
  }
  return has === attribute
    ? undefined
    : `table ${tableName} has its time to live at ${has}, not at ${attribute}`;
}

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

function attributesOf({ partitionKey, sortKey }: Keyed): readonly string[] {
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
async function createIndexes(
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
    await (failure === undefined ? sleep(pauseMs) : undefined);
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
