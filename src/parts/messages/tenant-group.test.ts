import fc from "fast-check";
import { expect, test } from "vitest";
import { tenantGroup } from "./tenant-group.ts";

const hashOf = expect.stringMatching(/^sha256:[\w-]{43}$/);

test.each(["acme", "a", "7", "acme/eu:1@x", "x".repeat(100)])(
  "is the tenant %s itself",
  (tenantId) => {
    expect(tenantGroup(tenantId)).toBe(tenantId);
  },
);

test.each(["a b", "täñant", "x".repeat(101), "-", "sha256:x"])(
  "is a hash for the tenant %s",
  (tenantId) => {
    expect(tenantGroup(tenantId)).toEqual(hashOf);
  },
);

test("is one group for all messages without a tenant, and no tenant's", () => {
  expect(tenantGroup(undefined)).toBe("-");
  expect(tenantGroup("-")).not.toBe("-");
});

test("always fits SQS and EventBridge, and differs by tenant", () => {
  const tenants = fc.string({ minLength: 1, maxLength: 140, unit: "grapheme" });
  fc.assert(
    fc.property(tenants, tenants, (one, other) => {
      expect(tenantGroup(one)).toMatch(/^[\x21-\x7e]{1,100}$/);
      expect(tenantGroup(one) === tenantGroup(other)).toBe(one === other);
      expect(tenantGroup(tenantGroup(one)) === tenantGroup(one)).toBe(tenantGroup(one) === one);
    }),
  );
});
