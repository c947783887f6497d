import { PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { physicalTableName } from "../../app/handlers/table.ts";
import { allTables } from "../../app/registry/registry.ts";
import { serverInternals } from "../../app/server/server.ts";
import { type TenantSource, tenantSources } from "../../app/tenants/tenant-source.ts";
import { eraseTenant, exportTenant, type WalkState } from "../../app/tenants/walk.ts";
import type { Database } from "../../base/types/database.ts";
import { buildServer, defineFeature } from "../../index.ts";
import {
  historyPartition,
  systemPartition,
  tenantPartition,
  userPartition,
} from "../../parts/config/read/rows.ts";
import { tenantPrefix } from "../../parts/wall/tenant-prefix.ts";
import { startTestStack, type TestStack } from "../../tools/testing/app/test-stack.ts";
import { accountOf } from "../adapters/adapters.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { ensureTables } from "../tables/tables.ts";
import { dynamoTenantRows } from "./tenant-rows.ts";

// On the embedded stack, and on the LocalStack of `npm run test:localstack`.

const crates = defineFeature("crates", (r) => {
  r.table("crates", {
    partitionKey: "pk",
    sortKey: "sk",
    tenant: true,
    indexes: { byOwner: { partitionKey: "owner" } },
  });
  r.table("lids", { partitionKey: "lid", tenant: true });
  r.event(
    "crate.packed" as never,
    {
      "~standard": { version: 1, vendor: "t", validate: (value: unknown) => ({ value }) },
    } as never,
  );
});
const built = buildServer({ features: [crates] });
const server = serverInternals(built);

let stack: TestStack;
let database: Database;
const named = (table: string) => physicalTableName(table, "keelson", stack.env);
beforeAll(async () => {
  stack = await startTestStack(built);
  database = await openDatabase({ endpoint: stack.endpoint, ...accountOf(stack.env) });
  const tables = allTables(server.registry).map((table) => ({
    ...table,
    tableName: named(table.name),
  }));
  await ensureTables(database, tables, "create");
});
afterAll(async () => {
  database.destroy();
  await stack.close();
});

type Row = Readonly<Record<string, unknown>>;
const put = (table: string, Item: Row) =>
  database.send(new PutCommand({ TableName: named(table), Item }));
async function stored(): Promise<Row[]> {
  const all: Row[] = [];
  for (const { name } of allTables(server.registry)) {
    const { Items = [] } = await database.send(new ScanCommand({ TableName: named(name) }));
    all.push(...Items.map((item) => ({ table: name, ...item })));
  }
  return sorted(all);
}
const placeOf = ({ table, pk, lid, sk }: Row) => JSON.stringify([table, pk, lid, sk]);
const sorted = (rows: readonly Row[]) =>
  rows.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1));

/** Rows of a tenant in every table, in the forms of this version and of earlier ones. */
const rowsOf = (tenantId: string): readonly (readonly [string, Row])[] => [
  ...["1", "2", "3"].map(
    (sk) =>
      [
        "crates",
        { pk: `${tenantPrefix(tenantId)}a`, sk, owner: `${tenantPrefix(tenantId)}ann` },
      ] as const,
  ),
  ["lids", { lid: tenantPrefix(tenantId) }],
  [
    "outbox",
    {
      pk: "shard#1",
      sk: `1#${tenantId}`,
      eventId: "e",
      type: "crate.packed",
      tenantId,
      envelope: "{}",
    },
  ],
  [
    "outbox",
    {
      pk: "aside",
      sk: `2#${tenantId}#shard#1`,
      envelope: JSON.stringify({ tenantId }),
      asideReason: "never",
    },
  ],
  ["once", { pk: `hash of ${tenantId}`, sk: "dedup:r1", tenantId }],
  ...[tenantPartition(tenantId), userPartition(tenantId, "ann"), userPartition(tenantId, tenantId)]
    .flatMap((partition) => [partition, historyPartition(partition)])
    .map((pk) => ["config", { pk, sk: "crates:config:limit", value: 1 }] as const),
];
const nobodys: readonly (readonly [string, Row])[] = [
  ["crates", { pk: "acme", sk: "from before the wall" }],
  ["outbox", { pk: "shard#1", sk: "1#odd", envelope: { not: "a text" } }],
  ["outbox", { pk: "shard#1", sk: "1#system", envelope: "{}" }],
  ["once", { pk: "hash", sk: "dedup:anonymous" }],
  ["config", { pk: systemPartition(), sk: "crates:config:limit", value: 1 }],
];
/** Some begin like others, some like keys, some need every kind of escaping. */
const emulatedAt = process.env["KEELSON_TEST_ENDPOINT"];
const strange = ["acm", "ACME", "acme#ann", "%", "=s", "__proto__", "é\u0301"];
// A call of an emulator of AWS takes ten times as long: what it is asked for is how it reads filters, not each ID.
const tenants = [
  "acme",
  "acme2",
  "acme/a",
  ...(emulatedAt === undefined ? strange : []),
  "🙂".repeat(128),
];

const opened = (tenant: string, pageSize?: number) => ({
  ...tenantSources(server, tenant, stack.env),
  rows: dynamoTenantRows(database, { pageSize, wait: async () => undefined }),
  keep: async () => undefined,
});

describe("the rows of a tenant", () => {
  test("are exported and erased completely, page by page, without those of other tenants", async () => {
    await Promise.all(
      [...nobodys, ...tenants.flatMap(rowsOf)].map(([table, row]) => put(table, row)),
    );
    for (const [index, tenant] of tenants.entries()) {
      const work = opened(tenant, 7);
      const written: string[] = [];
      await exportTenant({ ...work, write: async (lines) => void written.push(lines) });
      expect(written.join("").split("\n")).toHaveLength(rowsOf(tenant).length + 1);
      const { state, isDone } = await eraseTenant({ ...work, isDryRun: false });
      expect([isDone, state.pass, state.counts.map(({ untold }) => untold)]).toEqual([
        true,
        2,
        [0, 0, 1, 1, 0],
      ]);
      const left = [...nobodys, ...tenants.slice(index + 1).flatMap(rowsOf)];
      expect(await stored()).toEqual(sorted(left.map(([table, row]) => ({ table, ...row }))));
    }
  });

  test("are counted by a dry run, which deletes none", async () => {
    for (const [table, row] of rowsOf("acme")) await put(table, row);
    const before = await stored();
    const { state } = await eraseTenant({ ...opened("acme"), isDryRun: true });
    expect(state.counts.map(({ rows }) => rows)).toEqual([3, 1, 2, 1, 6]);
    expect(await stored()).toEqual(before);
  });
});

const source = () => tenantSources(server, "acme", stack.env).sources[0] as TenantSource; // safe: there are tables
const key = (sk: number) => ({
  pk: { S: "acme/a" },
  sk: { S: String(sk) },
  owner: { S: "not of the key" },
});

/** Answers BatchWriteItem so that of each call's rows all but `done` are left. */
function throttled(done: number) {
  const [asked, waits]: [number[], number[]] = [[], []];
  const send = async ({
    input: { RequestItems },
  }: {
    input: { RequestItems: Record<string, unknown[]> };
  }) => {
    const [[name, rows]] = Object.entries(RequestItems) as [[string, unknown[]]]; // safe: one table at a time
    asked.push(rows.length);
    return { UnprocessedItems: rows.length > done ? { [name]: rows.slice(done) } : undefined };
  };
  const rows = dynamoTenantRows({ send } as never, {
    wait: async (attempt) => void waits.push(attempt),
  });
  return { rows, asked, waits };
}

describe("an operation that DynamoDB does only in part", () => {
  test("is repeated after a pause, until it is done", async () => {
    const { rows, asked, waits } = throttled(10);
    await rows.remove(
      source(),
      Array.from({ length: 25 }, (_, index) => key(index)),
    );
    expect([asked, waits]).toEqual([
      [25, 15, 5],
      [1, 2],
    ]);
  });

  test("is given up after ten attempts, with an error", async () => {
    const { rows, asked } = throttled(0);
    await expect(rows.remove(source(), [key(1), key(2)])).rejects.toThrow(
      `${source().tableName}: 2 rows were not deleted in 10 attempts; it is throttled`,
    );
    expect(asked).toHaveLength(10);
  });

  test("names its table in any error", async () => {
    const missing = { ...source(), tableName: "no-such-table" };
    await expect(opened("acme").rows.page(missing, undefined, true)).rejects.toThrow(
      "no-such-table: ResourceNotFoundException: ",
    );
    const rows = dynamoTenantRows({ send: () => Promise.reject("gone") } as never, {
      wait: async () => undefined,
    });
    await expect(rows.remove(source(), [key(1)])).rejects.toThrow(`${source().tableName}: gone`);
    const silent = dynamoTenantRows({ send: async () => ({}) } as never, {
      wait: async () => undefined,
    });
    expect(await silent.page(source(), undefined, false)).toEqual({
      items: [],
      scanned: 0,
      next: undefined,
    });
  });
});

test("finds and erases 10,000 rows in pages that DynamoDB bounds", async () => {
  const { BatchWriteItemCommand } = await import("@aws-sdk/client-dynamodb");
  const filler = { S: "x".repeat(200) };
  const TableName = named("lids");
  const count = emulatedAt === undefined ? 10_000 : 100;
  const batches = Array.from({ length: count / 25 }, (_, batch) =>
    Array.from({ length: 25 }, (_, index) => {
      const [number, owner] = [batch * 25 + index, index % 5 === 0 ? "acme" : "globex"];
      return { PutRequest: { Item: { lid: { S: `${owner}/${number}` }, filler } } };
    }),
  );
  for (let at = 0; at < batches.length; at += 8) {
    await Promise.all(
      batches
        .slice(at, at + 8)
        .map((batch) =>
          database.send(new BatchWriteItemCommand({ RequestItems: { [TableName]: batch } })),
        ),
    );
  }
  const states: WalkState[] = [];
  const work = opened("acme");
  const lids = { ...work, sources: work.sources.filter(({ table }) => table === "lids") };
  const { state } = await eraseTenant({
    ...lids,
    keep: async (state) => void states.push(state),
    isDryRun: false,
  });
  // One of before is the tenant's as well.
  expect([state.pass, state.counts[0]?.rows]).toEqual([2, count * 0.2 + 1]);
  expect(new Set(states.map(({ from }) => from)).size).toBeGreaterThan(count === 10_000 ? 2 : 0);
});
