import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { configTable } from "../../app/handlers/table.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { TestClock } from "./test-clock.ts";
import { itemOf, type TestRow } from "./test-row.ts";
import type { TestStack } from "./test-stack.ts";

/** Configuration rows of a test app. Calls of this database are not counted as the app's. */
export interface TestRows {
  /** Writes a row, and tells the cache of the running process. */
  put(row: TestRow): Promise<void>;
  close(): void;
}

/** Opens the configuration rows of a test app, whose process `running` returns. */
export async function openTestRows(
  { endpoint, env }: TestStack,
  clock: TestClock,
  running: () => Promise<Runtime>,
): Promise<TestRows> {
  const { AWS_ACCESS_KEY_ID = "", AWS_SECRET_ACCESS_KEY = "", AWS_REGION: region } = env;
  const database = await openDatabase({
    endpoint,
    region,
    credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
  });
  return {
    put: async (row) => {
      const runtime = await running();
      const { pk, sk, ...stored } = itemOf(row, clock);
      await database.send(
        new PutCommand({
          TableName: runtime.tableName(configTable.name),
          Item: { pk, sk, ...stored },
        }),
      );
      const renamed = successorOf(sk, runtime.server.registry);
      if (renamed === undefined) runtime.configRows.notePut(pk, sk, stored);
      else runtime.configRows.invalidate(pk, renamed.id);
    },
    close: () => database.destroy(),
  };
}
