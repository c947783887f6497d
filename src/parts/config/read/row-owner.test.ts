import fc from "fast-check";
import { expect, test } from "vitest";
import { ownerOf } from "./row-owner.ts";
import {
  historyPartition,
  rowLevels,
  systemPartition,
  tenantPartition,
  userPartition,
} from "./rows.ts";

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
