import { tableVariable } from "../../app/handlers/table.ts";
import { allTables } from "../../app/registry/registry.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";

export interface TestStack extends EmbeddedStack {
  /**
   * Real time to wait at each step, in milliseconds. An AWS emulator does not follow the test's
   * clock.
   */
  readonly waitMs: number;
  /**
   * Maximum total time by which settling advances the test's clock, in milliseconds. An emulator
   * hides messages by real time. Without a limit, the test's clock would run ten times as fast
   * until a message is visible again, and the consumers' records of completed work would expire.
   */
  readonly mostMs: number;
}

/**
 * Starts the stack of a test app. It is an embedded stack, unless `KEELSON_TEST_ENDPOINT` names an
 * AWS emulator: then the app gets its own tables there, which are deleted when it closes.
 */
export async function startTestStack(server: Server): Promise<TestStack> {
  const endpoint = process.env["KEELSON_TEST_ENDPOINT"];
  if (!endpoint)
    return {
      ...(await startEmbeddedStack({ env: { NODE_ENV: "test" } })),
      waitMs: 5,
      mostMs: Number.POSITIVE_INFINITY,
    };
  const suffix = crypto.randomUUID().slice(0, 8);
  const names = allTables(serverInternals(server).registry).map(({ name }) => name);
  const tables = names.map((name) => [tableVariable(name), `test-${suffix}-${name}`] as const);
  const messages = {
    KEELSON_EVENT_BUS: `test-${suffix}`,
    KEELSON_EVENT_QUEUE: `test-${suffix}-events`,
    KEELSON_JOB_QUEUE: `test-${suffix}-jobs.fifo`,
  };
  return {
    endpoint,
    waitMs: 500,
    mostMs: 100_000,
    env: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      ...Object.fromEntries(tables),
      ...messages,
    },
    close: () => deleteTables(endpoint, tables),
  };
}

async function deleteTables(
  endpoint: string,
  tables: readonly (readonly [string, string])[],
): Promise<void> {
  const { DeleteTableCommand } = await import("@aws-sdk/client-dynamodb");
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({ endpoint, region: "us-east-1", credentials });
  // Ignores failures: a table may never have been created, or may be deleted already.
  for (const [, TableName] of tables)
    await database.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  database.destroy();
}
