import type { TableDescription } from "@aws-sdk/client-dynamodb";
import type { Database } from "../../base/types/database.ts";
import {
  attributeDefinitions,
  attributesOf,
  createIndexes,
  indexDescription,
  indexFault,
  keySchema,
  type RequiredTable,
} from "./table-indexes.ts";

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
