import assert from "node:assert/strict";
import fc from "fast-check";
import { dynamoApiKeys } from "../../../src/aws/stores/api-key-store.ts";
import { asideItem, itemBefore } from "../../../src/aws/stores/aside-store.ts";
import { dynamoConfigRows } from "../../../src/aws/stores/config-rows.ts";
import { readOutboxRecord } from "../../../src/aws/stores/outbox-record.ts";
import { dynamoDueJobs, dynamoOutbox } from "../../../src/aws/stores/outbox-store.ts";
import { dynamoTenants } from "../../../src/aws/stores/tenant-store.ts";
import { FrameworkError, PipelineError } from "../../../src/base/errors/errors.ts";
import { isIdentifier } from "../../../src/base/identity/access.ts";
import { createSecrets } from "../../../src/base/secrets/secrets.ts";
import { createTenantConfig } from "../../../src/parts/config/declare/declaration.ts";
import { createComputedValues } from "../../../src/parts/config/read/computed-values.ts";
import { uncachedRows } from "../../../src/parts/config/read/key-rows.ts";
import { createConfigResolver } from "../../../src/parts/config/read/resolver.ts";
import { createRowCipher } from "../../../src/parts/config/read/row-cipher.ts";
import { createSuspensions } from "../../../src/parts/tenant-registry/suspensions.ts";
import { damagedValue } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";
import { damagedItem, databaseOf, documentOf } from "./fake-database.ts";

const nowMs = 1_700_000_000_000;
const clock = { now: () => nowMs };

const bounds = { min: 1, max: 100 };
const definitions = {
  "shop:config:limit": createTenantConfig("number", { default: 10, bounds }).definition,
  "shop:config:mode": createTenantConfig("select", { options: ["a", "b"], default: "a" })
    .definition,
  "shop:config:on": createTenantConfig("boolean", { default: false }).definition,
  "shop:config:text": createTenantConfig("text", { default: "" }).definition,
  "shop:config:token": createTenantConfig("text", { encrypted: true }).definition,
};
type KeyId = keyof typeof definitions;
const ids = Object.keys(definitions) as KeyId[]; // safe: of this object
const fits: Readonly<Record<KeyId, (value: unknown) => boolean>> = {
  "shop:config:limit": (value) =>
    typeof value === "number" && value >= bounds.min && value <= bounds.max,
  "shop:config:mode": (value) => value === "a" || value === "b",
  "shop:config:on": (value) => typeof value === "boolean",
  "shop:config:text": (value) => typeof value === "string",
  "shop:config:token": (value) => value === undefined,
};
const values: Readonly<Record<KeyId, unknown>> = {
  "shop:config:limit": 50,
  "shop:config:mode": "b",
  "shop:config:on": true,
  "shop:config:text": "t",
  "shop:config:token": { sealed: 1, key: "k1", data: new Uint8Array(40) },
};
const configRows = fc.constantFrom(...ids).chain((id) =>
  fc.record({
    id: fc.constant(id),
    wire: damagedItem({
      ...{
        pk: "config#tenant#acme",
        sk: id,
        value: values[id],
        version: 3,
        expiresAt: nowMs / 1_000 + 60,
      },
      ...{
        updatedAt: "2026-11-28T00:00:00Z",
        updatedBy: "ann",
        reason: "why",
        renamedTo: undefined,
      },
    }),
  }),
);

const configRow = parser({
  name: "config-row",
  reads: "rows of the table of configuration, which operators may write by hand",
  inputs: configRows,
  holds: async ({ id, wire }) => {
    const item = documentOf(wire);
    if (item === undefined) return;
    const early = { read: async () => [item] };
    const rows = dynamoConfigRows({} as never, "config", { early }); // safe: `early` answers every read
    const lines: (readonly [string, object | undefined])[] = [];
    const note = (msg: string, data?: object) => void lines.push([msg, data]);
    const log = { info: note, debug: note, error: note, warn: note, child: () => log };
    const caller = { tenantId: "acme", userId: undefined };
    const session = {
      ...{ ...caller, log, clock, held: new Map() },
      rows: uncachedRows({ read: (addresses) => rows.read(addresses) }, caller),
      computed: createComputedValues(),
      cipher: createRowCipher(createSecrets({ clock }), () => "config"),
      contextFor: () => assert.fail("no key is computed"),
    };
    const definition = definitions[id];
    const { resolve } = createConfigResolver();
    const { value: resolved } = await outcomeOf(async () => resolve(session, id, definition), {
      errors: [FrameworkError],
    });
    if (resolved !== undefined)
      assert.ok(fits[id](resolved.value), `${id} is ${String(resolved.value)}`);
    for (const [, data] of lines) assert.ok(JSON.stringify(data).length < 1_000);
  },
});

const envelope = {
  pk: "shard#3",
  sk: "001700000000000#e1",
  eventId: "e1",
  type: "order.placed",
  tenantId: "acme",
  envelope: "{}",
};
const { envelope: _envelope, ...head } = envelope;

const outboxRow = parser({
  name: "outbox-row",
  reads: "rows of the outbox, of events that were set aside, and of due jobs",
  inputs: damagedItem(envelope, { ...head, parts: 1 }),
  holds: async (wire) => {
    const item = documentOf(wire);
    if (item === undefined) return;
    const { database } = databaseOf(wire);
    const pending = () => dynamoOutbox(database, "outbox").pending("shard#3", "9", 10);
    const { value: rows = [] } = await outcomeOf(pending);
    for (const row of rows) {
      const { shard, sort, eventId, type, text, tenantId, unreadable } = row;
      assert.ok([shard, sort, eventId, type, text].every((part) => typeof part === "string"));
      assert.ok(tenantId === undefined || typeof tenantId === "string");
      // An unreadable row is set aside, and put back unchanged.
      if (unreadable === undefined || typeof item["sk"] !== "string" || item["pk"] !== "shard#3")
        continue;
      const { asideReason: _reason, asideAt: _at, ...kept } = item;
      const { asideReason, asideAt, ...before } =
        itemBefore(asideItem(row, "no event", nowMs)) ?? {};
      assert.deepEqual(before, kept);
    }
    const place = { shard: "due#1", sort: "001700000000000#j1" };
    const due = dynamoDueJobs(database, "outbox");
    await outcomeOf(() => due.takeBack(place as never, "acme")); // safe: it reads only the place
  },
});

const streamed = {
  ...{ eventSource: "aws:dynamodb", eventName: "INSERT" },
  eventSourceARN: "arn:aws:dynamodb:eu-west-1:123456789012:table/keelson-outbox/stream/2026",
  dynamodb: {
    Keys: { pk: { S: "shard#3" }, sk: { S: "001700000000000#e1" } },
    SequenceNumber: "111",
  },
};

const outboxRecord = parser({
  name: "outbox-record",
  reads: "records of a DynamoDB stream that anyone may send to the function of the outbox",
  inputs: damagedValue(fc.constant(streamed)),
  holds: (record) => {
    const read = readOutboxRecord(record as never, "keelson-outbox"); // safe: it takes anything
    if (!("row" in read)) return assert.ok(read.skipped.length < 100);
    assert.match(read.row.shard, /^shard#\d{1,4}$/);
    assert.match(read.row.sort, /^\d{15}#[\w-]{1,128}$/);
  },
});

const registered = {
  pk: "tenant#acme",
  sk: "tenant",
  tenantId: "acme",
  timeZone: "UTC",
  createdMs: 5,
  suspendedMs: 6,
  reason: "r",
};

const tenantRow = parser({
  name: "tenant-row",
  reads: "rows of the registry of tenants",
  inputs: damagedItem(registered),
  holds: async (wire) => {
    if (documentOf(wire) === undefined) return;
    const { database } = databaseOf(wire);
    const suspensions = createSuspensions({
      store: async () => dynamoTenants(database, "once"),
      clock,
      onUnreadable: () => undefined,
    });
    const { error } = await outcomeOf(() => suspensions.assertActive("acme"), {
      errors: [PipelineError],
    });
    // A tenant stays suspended, regardless of the rest of the row.
    if ("suspendedMs" in wire) assert.ok(error !== undefined, "a suspended tenant is served");
  },
});

const stored = {
  pk: "api-key#h",
  sk: "secret",
  id: "key_1",
  tenantId: "acme",
  roles: ["reader"],
  endsMs: nowMs + 60_000,
};

const apiKeyRow = parser({
  name: "api-key-row",
  reads: "rows of API keys",
  inputs: damagedItem(stored),
  holds: async (wire) => {
    if (documentOf(wire) === undefined) return;
    const { database } = databaseOf(wire);
    const { value: owner } = await outcomeOf(() => dynamoApiKeys(database, "once").find("h"), {
      errors: [Error],
    });
    if (owner === undefined) return;
    const { id, tenantId, roles, endsMs } = owner;
    assert.ok(isIdentifier(id) && isIdentifier(tenantId), "a caller without a name or a tenant");
    assert.ok(Array.isArray(roles) && roles.every(isIdentifier));
    assert.ok(endsMs === undefined || Number.isFinite(endsMs), "a key that never ends");
  },
});

export const rowParsers = [configRow, outboxRow, outboxRecord, tenantRow, apiKeyRow];
