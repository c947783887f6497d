import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { configTable, tableVariable } from "../../../app/handlers/table.ts";
import { allTables } from "../../../app/registry/registry.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { type Server, serverInternals } from "../../../app/server/server.ts";
import { accountOf } from "../../../aws/adapters/adapters.ts";
import { type ClientOptions, clientOptions } from "../../../aws/clients/client-options.ts";
import { closeDatabase, openDatabase } from "../../../aws/clients/dynamodb.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../../embedded/stack/index.ts";
import { openStackHere } from "../../../embedded/stack/stack-here.ts";
import { type ConfigScope, successorOf } from "../../../parts/config/declare/key.ts";
import {
  systemPartition,
  tenantPartition,
  userPartition,
} from "../../../parts/config/read/rows.ts";
import type { Client } from "./faults.ts";
import { sendDirectly } from "./stack-transport.ts";
import type { TestClock } from "./test-clock.ts";

export interface TestStack extends EmbeddedStack {
  /** Real time to wait at each step: an AWS emulator does not follow the test's clock. */
  readonly waitMs: number;
  /**
   * Maximum advance of the test's clock. An emulator hides messages by real time, and the test's
   * clock runs ten times as fast: without a limit, records of completed work would expire.
   */
  readonly mostMs: number;
  /** Saves a client of the app the way over a socket. Default: its calls are HTTP requests. */
  readonly connect?: (client: Client) => void;
}

/**
 * Starts an embedded stack, unless `KEELSON_TEST_ENDPOINT` names an AWS emulator. There, the app
 * gets its own tables, which `close` deletes.
 *
 * @param inProcess - opens the embedded stack in this process, which is faster than to start another,
 * for thousands of calls.
 */
export async function startTestStack(server: Server, inProcess = false): Promise<TestStack> {
  const endpoint = process.env["KEELSON_TEST_ENDPOINT"];
  if (!endpoint) {
    const times = { waitMs: 5, mostMs: Number.POSITIVE_INFINITY };
    if (!inProcess)
      return { ...(await startEmbeddedStack({ env: { NODE_ENV: "test" } })), ...times };
    const stack = await openStackHere(() => Date.now());
    return { ...stack, ...times, connect: (client) => sendDirectly(client, stack) };
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
    KEELSON_RECEIVED_QUEUE: `${own}-received`,
  };
  const tables = names.map((name) => `${own}-${name}`);
  const close = () => deleteTables({ endpoint, ...accountOf(env) }, tables);
  return { endpoint, env, waitMs: 500, mostMs: 100_000, close };
}

async function deleteTables(place: ClientOptions, tables: readonly string[]) {
  const { DeleteTableCommand } = await import("@aws-sdk/client-dynamodb");
  const database = await openDatabase(place);
  // Ignores failures: a table may not exist.
  for (const TableName of tables)
    await database.send(new DeleteTableCommand({ TableName })).catch(() => undefined);
  closeDatabase(database);
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

/** Configuration row, written without validation. */
export interface TestRow {
  readonly scope: ConfigScope;
  readonly tenantId?: string;
  readonly userId?: string;
  /** Identifier of the configuration key. */
  readonly key: string;
  readonly value: unknown;
  /** Version of the row. Default 1. */
  readonly version?: number;
  /** Expiry, in seconds since the epoch. */
  readonly expiresAt?: number;
  readonly deleted?: true;
}

/** Its calls are not counted as the app's. */
export async function openTestRows(
  { endpoint, env }: TestStack,
  clock: TestClock,
  running: () => Promise<Pick<Runtime, "server" | "tableName" | "configRows">>,
) {
  const database = await openDatabase({ endpoint, ...accountOf(env) });
  return {
    /** Also updates the cache of the running process. */
    put: async ({ scope, tenantId, userId, key: sk, version = 1, ...rest }: TestRow) => {
      const runtime = await running();
      const pk = partitionOf(scope, tenantId, userId);
      const updatedAt = new Date(clock.now()).toISOString();
      const stored = { ...rest, version, updatedAt, updatedBy: "test" };
      const TableName = runtime.tableName(configTable.name);
      await database.send(new PutCommand({ TableName, Item: { pk, sk, ...stored } }));
      const renamed = successorOf(sk, runtime.server.registry);
      if (renamed === undefined) runtime.configRows.notePut(pk, sk, stored);
      else runtime.configRows.invalidate(pk, renamed.id);
    },
    close: () => closeDatabase(database),
  };
}

function partitionOf(scope: ConfigScope, tenantId: string | undefined, userId: string | undefined) {
  if (scope === "system") return systemPartition();
  if (tenantId === undefined)
    throw new TypeError(`app.rows.put: a row of scope ${scope} needs a tenantId`);
  if (scope === "tenant") return tenantPartition(tenantId);
  if (userId === undefined) throw new TypeError("app.rows.put: a row of scope user needs a userId");
  return userPartition(tenantId, userId);
}
