import { createSecretKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asideItem, outboxAttributes } from "../../aws/stores/aside-store.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import {
  historyPartition,
  systemPartition,
  tenantPartition,
  userPartition,
} from "../../parts/config/read/rows.ts";
import { dueId, dueRow } from "../../parts/messages/due-jobs.ts";
import { jobText } from "../../parts/messages/job-message.ts";
import { proofOf } from "../../parts/messages/proof.ts";
import { tenantKey, tenantValue } from "../../parts/wall/tenant-keys.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { type StoredItem, type TenantSource, tenantSources } from "./tenant-source.ts";
import { dynamoJson } from "./walk.ts";

const shelves = defineFeature("shelves", (r) => {
  r.config({
    keys: {
      pin: createTenantConfig("text", { encrypted: true, formerly: "shelves:config:code" }),
      limit: createTenantConfig("number", { default: 1 }),
    },
  });
  r.table("boxes", { partitionKey: "pk", sortKey: "sk", tenant: true });
  r.table("labels", { partitionKey: "id", tenant: true });
  r.table("prices", { partitionKey: "id", tenant: false });
});
const loud = defineFeature("loud", (r) => {
  r.event(
    "horn.blown" as never,
    {
      "~standard": { version: 1, vendor: "t", validate: (value: unknown) => ({ value }) },
    } as never,
    { keepDays: 30 },
  );
});
const server = serverInternals(
  buildServer({ features: [shelves, loud], keyRing: { parameter: "/ring" } }),
);
const quiet = serverInternals(buildServer({ features: [], dynamodb: { prefix: "app" } }));

const sourceOf = (table: string, tenant: string): TenantSource => {
  const found = tenantSources(server, tenant, {}).sources.find((source) => source.table === table);
  if (found === undefined) throw new Error(`no ${table}`);
  return found;
};
const texts = (item: Readonly<Record<string, string>>): StoredItem =>
  Object.fromEntries(Object.entries(item).map(([name, S]) => [name, { S }]));

/** Also those that look like another's beginning, like separators, and like what escaping makes. */
const tenants = fc.oneof(
  fc.constantFrom(
    "acme",
    "acme2",
    "acme/",
    "acme#",
    "a",
    "A",
    "=s",
    "%h",
    "__proto__",
    "config#user",
    "s=",
    "é",
    "🙂",
    "x".repeat(256),
  ),
  fc.string({ minLength: 1, maxLength: 12 }).filter(isIdentifier),
  fc.string({ minLength: 1, maxLength: 256, unit: "grapheme" }).filter(isIdentifier),
);

describe("the sources of a tenant's rows", () => {
  test("are tables with tenants, then keelson's own, configuration last; other tables are reported", () => {
    const { sources, notCovered } = tenantSources(server, "acme", {
      KEELSON_TABLE_BOXES: "prod-boxes",
    });
    expect(sources.map(({ table, tableName, keys }) => [table, tableName, keys])).toEqual([
      ["boxes", "prod-boxes", ["pk", "sk"]],
      ["labels", "keelson-labels", ["id"]],
      ["kept-events", "keelson-kept-events", ["pk", "sk"]],
      ["outbox", "keelson-outbox", ["pk", "sk"]],
      ["once", "keelson-once", ["pk", "sk"]],
      ["config", "keelson-config", ["pk", "sk"]],
    ]);
    expect(notCovered[0]).toBe("the table keelson-prices, which has no `tenant: true`");
    expect(tenantSources(quiet, "acme", {}).sources.map(({ tableName }) => tableName)).toEqual([
      "app-once",
      "app-config",
    ]);
  });

  test("are filtered by the attributes that determine the owner", () => {
    const filterOf = (table: string) => sourceOf(table, "a/b").filter;
    expect(filterOf("labels")).toEqual({
      expression: "begins_with(#key, :v0)",
      names: { "#key": "id" },
      values: { ":v0": { S: "a=2fb/" } },
    });
    expect(filterOf("config")).toEqual({
      expression: "#key = :v0 OR begins_with(#key, :v1) OR #key = :v2 OR begins_with(#key, :v3)",
      names: { "#key": "pk" },
      values: {
        ":v0": { S: "config#tenant#a/b" },
        ":v1": { S: "config#user#a/b#" },
        ":v2": { S: "history#config#tenant#a/b" },
        ":v3": { S: "history#config#user#a/b#" },
      },
    });
    expect(filterOf("once")).toEqual({
      expression: "#tenant = :tenant OR attribute_not_exists(#tenant)",
      names: { "#tenant": "tenantId" },
      values: { ":tenant": { S: "a/b" } },
    });
  });

  test("never assign a tenant's row to another, whatever their names", () => {
    const boxes = { name: "boxes", partitionKey: "pk", sortKey: "sk", indexes: [] };
    const rowsOf = (tenant: string, user: string): readonly (readonly [string, StoredItem])[] => [
      ["boxes", texts(tenantKey(boxes, tenant, user, "7"))],
      ["labels", texts({ id: tenantValue({ ...boxes, name: "labels" }, tenant, user) })],
      ["outbox", texts({ pk: "shard#1", sk: "1#e1", tenantId: tenant, envelope: "{}" })],
      [
        "outbox",
        texts({ pk: "shard#1", sk: "1#e1", envelope: JSON.stringify({ tenantId: tenant }) }),
      ],
      ["once", texts({ pk: "hash", sk: "dedup:r1", tenantId: tenant })],
      ...[tenantPartition(tenant), userPartition(tenant, user)]
        .flatMap((partition) => [partition, historyPartition(partition)])
        .map((pk) => ["config", texts({ pk, sk: "shelves:config:limit" })] as const),
    ];
    fc.assert(
      fc.property(tenants, tenants, tenants, (owner, other, user) => {
        for (const [table, row] of rowsOf(owner, user)) {
          expect(sourceOf(table, owner).verdict(row)).toBe("own");
          if (other !== owner) expect(sourceOf(table, other).verdict(row)).toBe("other");
        }
      }),
    );
  });

  test.each([
    ["once", texts({ pk: "hash", sk: "dedup:r1" }), "untold"],
    ["once", { ...texts({ pk: "hash", sk: "dedup:r1" }), tenantId: { N: "1" } }, "other"],
    ["outbox", texts({ pk: "shard#1", sk: "1#e1" }), "untold"],
    ["outbox", texts({ pk: "shard#1", sk: "1#e1", envelope: "{" }), "untold"],
    ["outbox", texts({ pk: "shard#1", sk: "1#e1", envelope: "[]" }), "untold"],
    ["outbox", texts({ pk: "shard#1", sk: "1#e1", envelope: "{}" }), "other"],
    ["boxes", { pk: { N: "1" } }, "other"],
    ["config", texts({ pk: systemPartition(), sk: "shelves:config:limit" }), "other"],
  ] as const)(
    "classify a row of %s without a tenant as no tenant's or unknown: %j is %s",
    (table, row, verdict) => {
      expect(sourceOf(table, "acme").verdict(row)).toBe(verdict);
    },
  );
});

describe("the export of a row", () => {
  const exported = (table: string, item: StoredItem) =>
    dynamoJson(sourceOf(table, "acme").exported(item));
  const bytes = Uint8Array.of(0, 255);

  test("has every DynamoDB type without loss", () => {
    const item: StoredItem = {
      n: { N: "123456789012345678901234567890.12345678" },
      ns: { NS: ["1", "2"] },
      ss: { SS: ["a"] },
      b: { B: bytes },
      bs: { BS: [bytes] },
      l: { L: [{ B: bytes }, { NULL: true }, { BOOL: false }] },
      m: { M: { b: { B: bytes } } },
    };
    const AP = "AP8=";
    expect(exported("boxes", item)).toEqual({
      ...item,
      b: { B: AP },
      bs: { BS: [AP] },
      l: { L: [{ B: AP }, { NULL: true }, { BOOL: false }] },
      m: { M: { b: { B: AP } } },
    });
  });

  test.each([
    [
      "sealed",
      "gone:config:pin",
      { M: { sealed: { N: "1" }, key: { S: "k1" }, data: { B: bytes } } },
    ],
    [
      "sealed in a form of later",
      "gone:config:pin",
      { M: { sealed: { N: "9" }, key: { S: "k1" }, data: { B: bytes } } },
    ],
    ["in plain text under an encrypted key", "shelves:config:pin", { S: "1234" }],
    ["in plain text under what an encrypted key was", "shelves:config:code", { S: "1234" }],
    ["in the history of an encrypted key", "shelves:config:pin#0000000000000001", { S: "1234" }],
  ])("shows of a secret only that it exists: %s", (_case, sk, value) => {
    const item: StoredItem = {
      ...texts({ pk: "config#tenant#acme", sk }),
      value: value as never,
      version: { N: "1" },
    };
    expect(exported("config", item)).toEqual({ ...item, value: { M: { secret: { BOOL: true } } } });
  });

  test.each([
    ["a number", { value: { N: "7" } }],
    [
      "an object that is no sealed value",
      { value: { M: { sealed: { N: "1" }, key: { S: "k" } } } },
    ],
    ["an object with a key alone", { value: { M: { sealed: { N: "1" } } } }],
    ["no value", { deleted: { BOOL: true } }],
  ])("has a setting as stored: %s", (_case, attributes) => {
    const item = {
      ...texts({ pk: "config#tenant#acme", sk: "shelves:config:limit" }),
      ...attributes,
    } as StoredItem;
    expect(exported("config", item)).toEqual(item);
  });

  test("has a delayed job without its proof, waiting or set aside, and otherwise as queued", async () => {
    const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
    const job = {
      jobId: dueId(1_000, "j"),
      name: "shelves.box.pack",
      payload: { proof: "of purchase", mac: "00:1b" },
      ...cause,
    };
    const key = createSecretKey(Buffer.alloc(32, 7));
    const proof = proofOf(
      { ...cause, kind: "job", source: "app", name: job.name, id: job.jobId, payload: job.payload },
      "k1",
      key,
    );
    const queued = { ...job, group: "g".repeat(43), deduplicationId: "d".repeat(43) };
    const row = dueRow({ ...queued, text: jobText(job, { proof }) });
    expect(row.text).toContain(proof.mac);

    for (const item of [
      { pk: row.shard, sk: row.sort, ...outboxAttributes(row) },
      asideItem(row, "no job", 0),
    ]) {
      const stored = texts(item as Record<string, string>);
      const { envelope, ...rest } = sourceOf("outbox", "acme").exported(stored);
      expect(envelope?.S).toBe(`${queued.deduplicationId} ${queued.group} ${jobText(job)}`);
      expect({ ...rest, envelope: stored["envelope"] }).toEqual(stored);
    }
  });

  test("has the parts of a large row, the last without the proof; parts of no tenant belong to none", () => {
    const source = sourceOf("outbox", "acme");
    const part = (tenantId: string | undefined, envelope: string) => ({
      ...texts({ pk: "part#shard#1#1#e1", sk: "2", envelope }),
      ...(tenantId === undefined ? {} : texts({ tenantId })),
    });
    const head = (tenantId: string | undefined) => ({
      ...texts({ pk: "shard#1", sk: "1#e1", eventId: "e1", type: "a.b" }),
      parts: { N: "3" },
      ...(tenantId === undefined ? {} : texts({ tenantId })),
    });
    for (const [tenantId, verdict] of [
      ["acme", "own"],
      ["evil", "other"],
      [undefined, "other"],
    ] as const) {
      expect(source.verdict(part(tenantId, 'xx"}'))).toBe(verdict);
      expect(source.verdict(head(tenantId))).toBe(verdict);
    }
    expect(source.exported(head("acme"))).toEqual(head("acme"));
    const [mac, own] = ["m".repeat(43), `xx","mac":"00-1b-44"}`];
    expect(source.exported(part("acme", `${own},"proof":{"key":"k","mac":"${mac}"}}`))).toEqual(
      part("acme", `${own},"proof":{"key":"k","mac":""}}`),
    );
  });

  test("has no proof, even in an envelope that was cut or moved within its row", () => {
    const mac = "m".repeat(43);
    const row = (envelope: string) =>
      texts({ pk: "aside", sk: "1#e1#due#1", tenantId: "acme", envelope });
    expect(exported("outbox", row(`one two {"proof":{"key":"k","mac":"${mac}"}} three`))).toEqual(
      row(`one two {"proof":{"key":"k","mac":""}} three`),
    );
    expect(exported("outbox", row(`"proof": {"key":"k", "mac" : "${mac}"`))).toEqual(
      row(`"proof": {"key":"k", "mac":""`),
    );
    expect(exported("outbox", texts({ pk: "aside", sk: "1" }))).toEqual(
      texts({ pk: "aside", sk: "1" }),
    );
  });

  test("has an event without its proof, and an invalid event unchanged", () => {
    const row = (envelope: string) =>
      texts({ pk: "shard#1", sk: "1#e1", tenantId: "acme", envelope });
    expect(exported("outbox", row(`{"type":"a.b","proof":{"key":"k","mac":"m"}}`))).toEqual(
      row(`{"type":"a.b"}`),
    );
    expect(exported("outbox", row(`{"type": "a.b"}`))).toEqual(row(`{"type": "a.b"}`));
    expect(exported("outbox", row("{"))).toEqual(row("{"));
    expect(exported("once", texts({ pk: "hash", sk: "dedup:r1" }))).toEqual(
      texts({ pk: "hash", sk: "dedup:r1" }),
    );
  });
});
