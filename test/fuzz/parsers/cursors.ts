import assert from "node:assert/strict";
import fc from "fast-check";
import type { TableDeclaration } from "../../../src/app/handlers/table.ts";
import { readPage as readTablePage } from "../../../src/app/handlers/table-page.ts";
import { dynamoConfigStore } from "../../../src/aws/stores/config-store.ts";
import { ValidationError } from "../../../src/base/errors/errors.ts";
import { parseKeyRing } from "../../../src/base/secrets/key-ring.ts";
import { createSecrets } from "../../../src/base/secrets/secrets.ts";
import { cursorOf, readPage } from "../../../src/parts/tenant-registry/tenant-input.ts";
import { damagedJson, damagedText } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";

const documented = { errors: [ValidationError] };
const base64url = (text: string) => Buffer.from(text).toString("base64url");

const table: TableDeclaration = {
  name: "files",
  tenant: true,
  ...{ partitionKey: "pk", sortKey: "sk" },
  indexes: [{ name: "byOwner", partitionKey: "owner", sortKey: "at", project: undefined }],
};
const clock = { now: () => 1_700_000_000_000 };
const open = createSecrets({ clock });
const sealing = createSecrets({ clock });
const ringKey = Buffer.alloc(32, 6).toString("base64");
sealing.begin(parseKeyRing(JSON.stringify({ active: "k1", keys: { k1: ringKey } })), 0);

/** Start positions of reads. The table always has two more items. */
const starts: (Readonly<Record<string, unknown>> | undefined)[] = [];
const database = {
  send: async ({
    input,
  }: {
    readonly input: { readonly ExclusiveStartKey?: Record<string, unknown> };
  }) => {
    starts.push(input.ExclusiveStartKey);
    const item = { pk: "4:acme/list", sk: "file-1", owner: "4:acme/ann", at: "2026" };
    return { Items: [item, { ...item, sk: "file-2" }] };
  },
};
const pageOf = (isSealed: boolean, options: object) => {
  const parts = { table, physicalName: "files", secrets: isSealed ? sealing : open };
  const ctx = { user: { tenantId: "acme" }, db: database as never }; // safe: it only sends
  return readTablePage(parts, ctx, { partition: "list", limit: 1, ...options });
};
const queries = [{}, { beginsWith: "file-" }, { index: "byOwner" }, { descending: true }];
const given = await Promise.all(
  [true, false].flatMap((isSealed) =>
    queries.map(async (query) => (await pageOf(isSealed, query)).cursor ?? ""),
  ),
);
const inside = given.map((cursor) => JSON.parse(Buffer.from(cursor, "base64url").toString()));

const tableCursor = parser({
  name: "table-cursor",
  reads: "cursors of pages of a table",
  inputs: fc.record({
    cursor: fc.oneof(
      damagedText(fc.constantFrom(...given)),
      damagedJson(fc.constantFrom(...inside)).map(base64url),
    ),
    isSealed: fc.boolean(),
    query: fc.constantFrom(...queries),
  }),
  holds: async ({ cursor, isSealed, query }) => {
    starts.length = 0;
    const { value: page } = await outcomeOf(
      () => pageOf(isSealed, { ...query, cursor }),
      documented,
    );
    if (page === undefined) return;
    // Only positions that this query has given are read, all of them within the tenant.
    const [start = {}] = starts;
    assert.equal(starts.length, 1);
    for (const name of ["pk", "owner"])
      assert.ok(
        !(name in start) || String(start[name]).includes("acme"),
        `another tenant: ${JSON.stringify(start)}`,
      );
    const isGiven = given.some((one) =>
      Buffer.from(one, "base64url").equals(Buffer.from(cursor, "base64url")),
    );
    const parts: unknown[] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const isSame = inside.some(
      (one) =>
        base64url(String(one[1])) === base64url(String(parts[1])) || sameBytes(one[1], parts[1]),
    );
    assert.ok(isGiven || isSame, "a position that was not given");
  },
});

function sameBytes(one: unknown, other: unknown): boolean {
  return Buffer.from(String(one), "base64url").equals(Buffer.from(String(other), "base64url"));
}

const place = ["Europe/Berlin", "acme"];

const tenantCursor = parser({
  name: "tenant-cursor",
  reads: "cursors of `server.tenants.list`",
  inputs: fc.oneof(
    damagedText(fc.constant(cursorOf({ timeZone: "Europe/Berlin", tenantId: "acme" }))),
    damagedJson(fc.constant(place)).map(base64url),
  ),
  holds: async (cursor) => {
    const { value: page } = await outcomeOf(() => readPage({ cursor }), documented);
    if (page?.after === undefined) return;
    assert.deepEqual(readPage({ cursor: cursorOf(page.after) }), page);
  },
});

const config = dynamoConfigStore({ send: async () => ({ Items: [] }) } as never, "config"); // safe: it only sends

const rotationCursor = parser({
  name: "rotation-cursor",
  reads: "where a rotation of the key ring goes on",
  inputs: fc.oneof(
    damagedText(fc.constant(base64url(JSON.stringify(["config#system", "shop:config:a"])))),
    damagedJson(fc.constant(["config#system", "shop:config:a"])).map(base64url),
  ),
  holds: async (from) => {
    await outcomeOf(() => config.sealedRows(from), documented);
  },
});

export const cursorParsers = [tableCursor, tenantCursor, rotationCursor];
