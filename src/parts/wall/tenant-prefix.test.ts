import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeTenant, tenantPrefix } from "./tenant-prefix.ts";

/** Every text, halves of surrogate pairs and long ones among them, and many that differ in little. */
const tenants = fc.oneof(
  fc.string({ minLength: 1, maxLength: 300, unit: "binary" }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 5 })
    .map((units) => String.fromCharCode(...units)),
  fc.stringMatching(/^[a-b=/#%.: ]{1,5}$/),
  fc.stringMatching(/^[a-b/]{250,260}$/),
);

test.each([
  ["acme", "acme"],
  ["Acme_1.eu@x-y", "Acme_1.eu@x-y"],
  ["a/b", "a=2fb"],
  ["a=2fb", "a=3d2fb"],
  ["a#b%c:d e", "a=23b=25c=3ad=20e"],
  ["ä", "=e4"],
  ["ł", "==0142"],
  ["😀", "==d83d==de00"],
  ["x".repeat(256), "x".repeat(256)],
  ["x".repeat(257), expect.stringMatching(/^=s[A-Za-z0-9_-]{43}$/)],
  ["/".repeat(86), expect.stringMatching(/^=s[A-Za-z0-9_-]{43}$/)],
])("the rows of %j begin with %j and a slash", (tenant, encoded) => {
  expect(encodeTenant(tenant)).toEqual(encoded);
  expect(tenantPrefix(tenant)).toBe(`${encodeTenant(tenant)}/`);
});

test("each tenant has a different encoding, and none is a prefix of another", () => {
  fc.assert(
    fc.property(tenants, tenants, (one, other) => {
      expect(encodeTenant(one) === encodeTenant(other)).toBe(one === other);
      expect(tenantPrefix(one).startsWith(tenantPrefix(other))).toBe(one === other);
    }),
  );
});

test("every encoded tenant fits into a session tag", () => {
  fc.assert(
    fc.property(tenants, (tenant) => {
      expect(encodeTenant(tenant)).toMatch(/^[A-Za-z0-9_.=@-]{1,256}$/);
    }),
  );
});

test.each([undefined, null, "", 7])("refuses %j as a tenant", (tenant) => {
  expect(() => tenantPrefix(tenant)).toThrow(TypeError);
});
