import { tableVariable } from "../../app/handlers/table.ts";
import { allTables } from "../../app/registry/registry.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { accountOf } from "../../aws/adapters/adapters.ts";
import { type ClientOptions, clientOptions } from "../../aws/clients/client-options.ts";
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
  const own = `test-${crypto.randomUUID().slice(0, 8)}`;
  const names = allTables(serverInternals(server).registry).map(({ name }) => name);
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    ...Object.fromEntries(names.map((name) => [tableVariable(name), `${own}-${name}`])),
    KEELSON_EVENT_BUS: own,
    KEELSON_EVENT_QUEUE: `${own}-events`,
    KEELSON_JOB_QUEUE: `${own}-jobs.fifo`,
  };
  const tables = names.map((name) => `${own}-${name}`);
  const close = () => deleteTables({ endpoint, ...accountOf(env) }, tables);
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

export async function putParameters(
  { endpoint, env }: EmbeddedStack,
  parameters: Readonly<Record<"String" | "SecureString", Readonly<Record<string, string>>>>,
): Promise<void> {
  const all = (["String", "SecureString"] as const).flatMap((Type) =>
    Object.entries(parameters[Type]).map(([Name, Value]) => ({ Name, Value, Type })),
  );
  if (all.length === 0) return;
  const { PutParameterCommand, SSMClient } = await import("@aws-sdk/client-ssm");
  const client = new SSMClient(clientOptions({ endpoint, ...accountOf(env) }));
  try {
    for (const parameter of all) await client.send(new PutParameterCommand(parameter));
  } finally {
    client.destroy();
  }
}
