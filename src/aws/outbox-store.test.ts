import { expect, test } from "vitest";
import { startEmbeddedStack } from "../embedded/index.ts";
import type { OutboxRow } from "../events/outbox.ts";
import { openDatabase } from "./dynamodb.ts";
import { dynamoOutbox } from "./outbox-store.ts";
import { ensureTables } from "./tables.ts";

const row = (number: number): OutboxRow => ({
  shard: "shard#1",
  sort: `00000000000000${number}#e${number}`,
  eventId: `e${number}`,
  type: "file.created",
  text: `{"eventId":"e${number}"}`,
});

test("What waits is read in its order, from before a time and behind a row, and goes away once it is removed", async () => {
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const database = await openDatabase({ endpoint: stack.endpoint, region: "us-east-1", credentials });
  try {
    await ensureTables(database, [{ name: "outbox", tableName: "outbox", partitionKey: "pk", sortKey: "sk" }], "create");
    const outbox = dynamoOutbox(database, "outbox");
    const { TransactWriteCommand } = await import("./dynamodb-sdk.ts");
    const items = [4, 2, 1, 3].map((number) => outbox.item(row(number)) as Record<string, never>); // an item of a transaction
    await database.send(new TransactWriteCommand({ TransactItems: items }));

    expect(await outbox.pending("shard#1", row(4).sort, 10)).toEqual([row(1), row(2), row(3)]);
    expect(await outbox.pending("shard#1", row(4).sort, 2)).toEqual([row(1), row(2)]);
    expect(await outbox.pending("shard#1", row(4).sort, 10, row(2).sort)).toEqual([row(3)]);
    expect(await outbox.pending("shard#2", row(4).sort, 10)).toEqual([]);
    await outbox.remove(row(1));
    await outbox.remove(row(1));
    expect(await outbox.pending("shard#1", row(4).sort, 10)).toEqual([row(2), row(3)]);
  } finally {
    database.destroy();
    await stack.close();
  }
}, 60_000);
