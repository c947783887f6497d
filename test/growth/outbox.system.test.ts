// The calls of a sweep, by the number of events that it dispatches.
import { afterAll, beforeAll, expect, test } from "vitest";
import { onceTable, outboxTable } from "../../src/app/handlers/table.ts";
import { dynamoClaimStore } from "../../src/aws/stores/claim-store.ts";
import { dynamoOutbox } from "../../src/aws/stores/outbox-store.ts";
import { transact } from "../../src/aws/stores/table.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import { createServerLogger } from "../../src/base/log/server-logger.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { createOutbox } from "../../src/parts/messages/outbox.ts";
import { createClaims } from "../../src/parts/once/claims.ts";
import { derivedId } from "../../src/parts/once/derived-id.ts";
import { countedDatabase } from "./counted-database.ts";
import { createManualTime } from "./manual-time.ts";

let stack: EmbeddedStack;
let store: ReturnType<typeof countedDatabase>;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  store = countedDatabase(stack.endpoint);
  const tables = [
    { ...onceTable, tableName: "claims" },
    { ...outboxTable, tableName: "outbox" },
  ];
  await ensureTables(store.database, tables, "create");
});
afterAll(async () => {
  store.database.destroy();
  await stack.close();
});

test.each([100, 1_000])(
  "a sweep of %i events deletes each, and reads pages of a hundred",
  async (count) => {
    const { clock } = createManualTime();
    const rows = dynamoOutbox(store.database, "outbox");
    const claims = createClaims({ store: dynamoClaimStore(store.database, "claims"), clock });
    const log = createServerLogger({ env: {}, environment: "test", write: () => {} });
    const bus = {
      name: "bus",
      put: async (events: readonly object[]) => events.map(() => undefined),
    };
    const outbox = createOutbox({ store: rows, claims, clock, log, bus: async () => bus });
    const items = Array.from({ length: count }, (_, n) =>
      rows.items(outbox.row({ eventId: derivedId(count, n), type: "x" }, "{}")),
    ).flat();
    while (items.length > 0) await transact(store.database, items.splice(0, 50) as never);
    const { calls } = await store.counted(() => outbox.sweep({ graceMs: 0 }));
    const shards = 8;

    expect(calls).toEqual({
      PutItem: shards,
      DeleteItem: count + shards,
      Query: expect.any(Number),
    });
    // The first row of each shard, its pages, and an empty page at its end.
    expect(calls["Query"]).toBeLessThanOrEqual(3 * shards + count / 100);
  },
);
