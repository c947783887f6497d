import { tableVariable } from "../../app/handlers/table.ts";
import { allTables } from "../../app/registry/registry.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { accountOf } from "../../aws/adapters/adapters.ts";
import type { ClientOptions } from "../../aws/clients/client-options.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";

export interface TestStack extends EmbeddedStack {
  /** Real time to wait at each step: an AWS emulator does not follow the test's clock. */
  readonly waitMs: number;
  /**
   * Maximum advance of the test's clock. An emulator hides messages by real time, and the test's
   * clock runs ten times as fast: without a limit, records of completed work would expire.
   */
  readonly mostMs: number;
}

/**
 * Starts an embedded stack, unless `KEELSON_TEST_ENDPOINT` names an AWS emulator. There, the app
 * gets its own tables, which `close` deletes.
 */
export async function startTestStack(server: Server): Promise<TestStack> {
  const endpoint = process.env["KEELSON_TEST_ENDPOINT"];
  if (!endpoint) {
    const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
    return { ...stack, waitMs: 5, mostMs: Number.POSITIVE_INFINITY };
  }
  const suffix = crypto.randomUUID().slice(0, 8);
  const tables = allTables(serverInternals(server).registry).map(
    ({ name }) => [tableVariable(name), `test-${suffix}-${name}`] as const,
  );
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    ...Object.fromEntries(tables),
    KEELSON_EVENT_BUS: `test-${suffix}`,
    KEELSON_EVENT_QUEUE: `test-${suffix}-events`,
    KEELSON_JOB_QUEUE: `test-${suffix}-jobs.fifo`,
  };
  const names = tables.map(([, table]) => table);
  const close = () => deleteTables({ endpoint, ...accountOf(env) }, names);
  return { endpoint, env, waitMs: 500, mostMs: 100_000, close };
}

async function deleteTables(place: ClientOptions, tables: readonly string[]): Promise<void> {
  const { DeleteTableCommand } = await import("@aws-sdk/client-dynamodb");
  const database = await openDatabase(place);
  // Ignores failures: a table may never have been created, or may be deleted already.
  for (const TableName of tables)
    await database.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  database.destroy();
}
