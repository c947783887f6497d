import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { codePoint } from "../../../../test/support/code-point.ts";
import {
  historyPartition,
  isCurrent,
  ownerOf,
  pathFrom,
  rowLevels,
  systemPartition,
  tenantPartition,
  userPartition,
} from "./rows.ts";

/** IDs that try to meet: separators, escapes, things that look escaped, surrogates, over-long ones. */
const id = fc.oneof(
  fc.string({
    unit: fc.constantFrom(
      "#",
      "%",
      "2",
      "3",
      "5",
      "u",
      "h",
      "D",
      "8",
      "0",
      "a",
      "é",
      "\ud800",
      "\udc00",
      "\ufffd",
    ),
  }),
  fc.string({ unit: codePoint }),
  fc.constantFrom(
    "",
    "#",
    "%23",
    "%u",
    "system",
    "tenant#a",
    "x".repeat(1000),
    "x".repeat(1001),
    "é".repeat(600),
  ),
);

const partition = fc.oneof(
  fc.tuple(fc.constant("tenant"), id).map((parts) => ({ parts, name: tenantPartition(parts[1]) })),
  fc
    .tuple(fc.constant("user"), id, id)
    .map((parts) => ({ parts, name: userPartition(parts[1], parts[2]) })),
  fc.constant({ parts: ["system"], name: systemPartition() }),
);

describe("partitions", () => {
  test("contain plain IDs unchanged", () => {
    expect(systemPartition()).toBe("config#system");
    expect(tenantPartition("acme")).toBe("config#tenant#acme");
    expect(userPartition("acme", "ann@example.com")).toBe("config#user#acme#ann@example.com");
    expect(tenantPartition("")).toBe("config#tenant#");
  });

  test.each([
    ["a#b", "config#tenant#a%23b"],
    ["a%23b", "config#tenant#a%2523b"],
    ["zoë/🙂", "config#tenant#zoë/🙂"],
    ["\ud800", "config#tenant#%uD800"],
    ["\udc00\ud800", "config#tenant#%uDC00%uD800"],
  ])("encode the ID %j as %s", (tenantId, name) => {
    expect(tenantPartition(tenantId)).toBe(name);
  });

  test("replace an over-long ID with its hash", () => {
    expect(tenantPartition("x".repeat(1000))).toBe(`config#tenant#${"x".repeat(1000)}`);
    expect(tenantPartition("x".repeat(1001))).toMatch(/^config#tenant#%h[0-9a-f]{64}$/);
    expect(tenantPartition("é".repeat(501))).toMatch(/^config#tenant#%h[0-9a-f]{64}$/);
  });

  test("are unique to their owner in UTF-8, as DynamoDB compares them", () => {
    fc.assert(
      fc.property(partition, partition, (one, other) => {
        const sameOwner = JSON.stringify(one.parts) === JSON.stringify(other.parts);
        expect(Buffer.from(one.name).equals(Buffer.from(other.name))).toBe(sameOwner);
      }),
      { numRuns: 2000 },
    );
  });

  test("always fit into a DynamoDB key", () => {
    fc.assert(
      fc.property(partition, ({ name }) => {
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(2048);
      }),
    );
    expect(
      Buffer.byteLength(userPartition("#".repeat(5000), "🙂".repeat(5000))),
    ).toBeLessThanOrEqual(2048);
  });
});

describe("rowLevels", () => {
  const ann = { tenantId: "acme", userId: "ann" };
  const user = { source: "user-row", partition: "config#user#acme#ann" };
  const tenant = { source: "tenant-row", partition: "config#tenant#acme" };
  const system = { source: "system-row", partition: "config#system" };

  test("returns only the levels of the key's scope, narrowest first", () => {
    expect(rowLevels("user", ann)).toEqual([user, tenant, system]);
    expect(rowLevels("tenant", ann)).toEqual([tenant, system]);
    expect(rowLevels("system", ann)).toEqual([system]);
  });

  test("skips a level without an ID, and the user level without a tenant", () => {
    expect(rowLevels("user", { tenantId: "acme", userId: undefined })).toEqual([tenant, system]);
    expect(rowLevels("user", { tenantId: undefined, userId: "ann" })).toEqual([system]);
    expect(rowLevels("user", { tenantId: null, userId: null } as never)).toEqual([system]);
  });
});

describe("pathFrom", () => {
  const system = { partition: systemPartition() };

  test("leads from the user to the tenant to the system partition, for any IDs", () => {
    for (const tenantId of ["acme", "", "a#b", "config#user#", "x".repeat(1001)]) {
      const [user, tenant] = [
        { partition: userPartition(tenantId, "ann#1") },
        { partition: tenantPartition(tenantId) },
      ];
      expect(pathFrom(user.partition)).toEqual([user, tenant, system]);
      expect(pathFrom(tenant.partition)).toEqual([tenant, system]);
    }
    expect(pathFrom(system.partition)).toEqual([system]);
  });
});

describe("isCurrent", () => {
  const now = 1_700_000_000_000;
  test.each([
    [undefined, false],
    [{ value: 1, version: 1 }, true],
    [{ value: 1, version: 1, deleted: true as const }, false],
    [{ value: 1, version: 1, expiresAt: 1_700_000_000 }, false],
    [{ value: 1, version: 1, expiresAt: 1_699_999_999 }, false],
    [{ value: 1, version: 1, expiresAt: 1_700_000_001 }, true],
    [{ value: 1, version: 1, expiresAt: Number.NaN }, false],
    // DynamoDB's client reads a number above 2^53 as a bigint, and rows may be written by hand.
    [{ value: 1, version: 1, expiresAt: (2n ** 60n) as never }, true],
    [{ value: 1, version: 1, expiresAt: { toString: 5 } as never }, false],
    [{ value: 1, version: 1, expiresAt: null as never }, false],
  ])("judges %o as %s", (row, expected) => {
    expect(isCurrent(row, now)).toBe(expected);
  });
});

describe("ownerOf", () => {
  const id = fc.oneof(
    fc.string({ minLength: 1, maxLength: 20 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 8 }),
    fc.constantFrom(
      "%",
      "#",
      "%25",
      "%23",
      "%u",
      "%uD800",
      "\ud800",
      "a\udc00b",
      "%h",
      "config#user#x",
    ),
  );

  test("a partition gives its owner and levels, for any IDs", () => {
    fc.assert(
      fc.property(id, id, (tenantId, userId) => {
        const of = { tenantId, userId };
        expect(ownerOf(userPartition(tenantId, userId))).toEqual({
          scope: "user",
          tenantId,
          levels: rowLevels("user", of),
        });
        expect(ownerOf(tenantPartition(tenantId))).toEqual({
          scope: "tenant",
          tenantId,
          levels: rowLevels("tenant", of),
        });
      }),
      { examples: [["%#", "a\udc00b"]] },
    );
    expect(ownerOf(systemPartition())).toEqual({
      scope: "system",
      tenantId: undefined,
      levels: rowLevels("system", { tenantId: undefined, userId: undefined }),
    });
  });

  test("gives the stored hash in place of an ID too long for a key", () => {
    expect(ownerOf(tenantPartition("ü".repeat(1_000)))?.tenantId).toMatch(/^%h[0-9a-f]{64}$/);
  });

  test.each([
    "config#tenants#a",
    "config#tenant#",
    "config#",
    "configuration",
    historyPartition(tenantPartition("a")),
  ])("gives no owner for %s", (partition) => {
    expect(ownerOf(partition)).toBeUndefined();
  });
});
