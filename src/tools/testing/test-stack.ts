import { tableVariable } from "../../app/features/table.ts";
import { allTables } from "../../app/registry/registry.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";

/** The stack of a test app. */
export interface TestStack extends EmbeddedStack {
  /** How long to wait beside moving the test's clock, in milliseconds: an emulator of AWS has a clock of its own. */
  readonly waitMs: number;
  /**
   * How far settling moves the test's clock at the most, in milliseconds. An emulator hides messages by its own clock: the
   * test's would run ten times as fast until one is there again, and consumers would have forgotten that they are done.
   */
  readonly mostMs: number;
}

/**
 * Starts the stack of a test app: an embedded one, or, where `KEELSON_TEST_ENDPOINT` names an emulator of AWS,
 * tables there that nobody else has, which go with the app.
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
  // One that was never made, or is gone already, is no concern of the test.
  for (const [, TableName] of tables)
    await database.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  database.destroy();
}
