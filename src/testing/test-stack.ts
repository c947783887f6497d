import { type Server, serverInternals } from "../app/server.ts";
import { configTable, onceTable, tableVariable } from "../app/table.ts";
import { openDatabase } from "../aws/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../embedded/index.ts";

/**
 * Starts the stack of a test app: an embedded one, or, where `KEELSON_TEST_ENDPOINT` names an emulator of AWS,
 * tables there that nobody else has, which go with the app.
 */
export async function startTestStack(server: Server): Promise<EmbeddedStack> {
  const endpoint = process.env["KEELSON_TEST_ENDPOINT"];
  if (!endpoint) return startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const suffix = crypto.randomUUID().slice(0, 8);
  const names = [configTable, onceTable, ...serverInternals(server).registry.tables.values()].map(({ name }) => name);
  const tables = names.map((name) => [tableVariable(name), `test-${suffix}-${name}`] as const);
  return {
    endpoint,
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      ...Object.fromEntries(tables),
    },
    close: () => deleteTables(endpoint, tables),
  };
}

async function deleteTables(endpoint: string, tables: readonly (readonly [string, string])[]): Promise<void> {
  const { DeleteTableCommand } = await import("@aws-sdk/client-dynamodb");
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({ endpoint, region: "us-east-1", credentials });
  // One that was never made, or is gone already, is no concern of the test.
  for (const [, TableName] of tables) await database.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  database.destroy();
}
