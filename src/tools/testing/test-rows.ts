import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { configTable } from "../../app/handlers/table.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { accountOf } from "../../aws/adapters/adapters.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { ConfigScope } from "../../parts/config/declare/key.ts";
import { systemPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import type { TestClock } from "./test-clock.ts";
import type { TestStack } from "./test-stack.ts";

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
  running: () => Promise<Runtime>,
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
    close: () => database.destroy(),
  };
}

function partitionOf(
  scope: ConfigScope,
  tenantId: string | undefined,
  userId: string | undefined,
): string {
  if (scope === "system") return systemPartition();
  if (tenantId === undefined)
    throw new TypeError(`app.rows.put: a row of scope ${scope} needs a tenantId`);
  if (scope === "tenant") return tenantPartition(tenantId);
  if (userId === undefined) throw new TypeError("app.rows.put: a row of scope user needs a userId");
  return userPartition(tenantId, userId);
}
