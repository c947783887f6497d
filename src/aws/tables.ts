import type { TableDeclaration } from "../app/table.ts";
import type { Database } from "../context/pipeline-context.ts";

/** A table as the store has to have it. */
export interface RequiredTable extends TableDeclaration {
  /** The physical name. */
  readonly tableName: string;
}

/**
 * Makes sure that every table is there: created where the store is an emulator, only checked
 * on AWS, where tables belong to the deployment.
 *
 * @throws Error naming every table that is missing or has other keys.
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

async function ensureTable(database: Database, table: RequiredTable, mode: "create" | "check"): Promise<string | undefined> {
  const { CreateTableCommand, DescribeTableCommand, ResourceInUseException, ResourceNotFoundException, waitUntilTableExists } =
    await import("@aws-sdk/client-dynamodb");
  const keys = [
    { AttributeName: table.partitionKey, KeyType: "HASH" as const },
    ...(table.sortKey === undefined ? [] : [{ AttributeName: table.sortKey, KeyType: "RANGE" as const }]),
  ];
  const describe = async () => (await database.send(new DescribeTableCommand({ TableName: table.tableName }))).Table;
  try {
    const { KeySchema = [] } = (await describe()) ?? {};
    const has = KeySchema.map(({ AttributeName }) => AttributeName).join(", ");
    const wanted = keys.map(({ AttributeName }) => AttributeName).join(", ");
    return has === wanted ? undefined : `table ${table.tableName} has the keys ${has}, not ${wanted}`;
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error;
  }
  if (mode === "check")
    return `table ${table.tableName} does not exist; deploy it, or set KEELSON_TABLE_${table.name.toUpperCase().replaceAll("-", "_")}`;
  try {
    await database.send(
      new CreateTableCommand({
        TableName: table.tableName,
        KeySchema: keys,
        AttributeDefinitions: keys.map(({ AttributeName }) => ({ AttributeName, AttributeType: "S" as const })),
        BillingMode: "PAY_PER_REQUEST",
      }),
    );
  } catch (error) {
    // Another process created it in between.
    if (!(error instanceof ResourceInUseException)) throw error;
  }
  await waitUntilTableExists({ client: database, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName: table.tableName });
  if (table.timeToLive !== undefined) await enableTimeToLive(database, table.tableName, table.timeToLive);
  return undefined;
}

async function enableTimeToLive(database: Database, tableName: string, attribute: string): Promise<void> {
  const { UpdateTimeToLiveCommand } = await import("@aws-sdk/client-dynamodb");
  const TimeToLiveSpecification = { AttributeName: attribute, Enabled: true };
  await database.send(new UpdateTimeToLiveCommand({ TableName: tableName, TimeToLiveSpecification }));
}
