import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AccessRule,
  access,
  allows,
  anonymous,
  type User,
} from "../../base/identity/access.ts";
import { isStricter, lockedAccess } from "./access-strictness.ts";

const roles = ["admin", "systemAdmin", "editor", "owner", "a, b"];
const simple = fc.oneof(
  fc.constantFrom(
    access.everyone,
    access.authenticated,
    access.tenant,
    access.admin,
    access.systemAdmin,
  ),
  fc
    .uniqueArray(fc.constantFrom(...roles), { minLength: 1, maxLength: 3 })
    .map((names) => access.roles(...names)),
);
const { rule } = fc.letrec<{ rule: AccessRule }>((tie) => ({
  rule: fc.oneof(
    { depthSize: "small" },
    simple,
    fc.array(tie("rule"), { minLength: 1, maxLength: 3 }).map((rules) => access.anyOf(...rules)),
    fc.array(tie("rule"), { minLength: 1, maxLength: 3 }).map((rules) => access.allOf(...rules)),
  ),
}));

/** Every caller whom a rule of these roles can tell from another. */
const everybody: readonly User[] = [
  anonymous,
  ...Array.from({ length: 2 ** roles.length }, (_, bits) => ({
    id: "ann",
    tenantId: "acme",
    roles: roles.filter((_role, index) => (bits >> index) % 2 === 1),
    kind: "user" as const,
  })),
];

/** As it comes out of the file. */
const stored = (given: AccessRule): unknown => JSON.parse(JSON.stringify(lockedAccess(given)));

test("a rule is stricter exactly when it refuses a user that the other allowed", () => {
  fc.assert(
    fc.property(rule, rule, (before, after) => {
      const refused = everybody.filter((user) => allows(before, user) && !allows(after, user));
      expect(isStricter(stored(before), stored(after))).toBe(refused.length > 0);
    }),
    { numRuns: 500 },
  );
});

test("the order and repetition of roles and rules do not matter", () => {
  const before = access.anyOf(access.roles("editor", "owner"), access.admin);
  const after = access.anyOf(access.admin, access.roles("owner", "editor", "owner"));

  expect([
    isStricter(stored(before), stored(after)),
    isStricter(stored(after), stored(before)),
  ]).toEqual([false, false]);
  expect(lockedAccess(access.roles("b", "a", "b"))).toEqual({ roles: ["a", "b"] });
});

test.each([
  "anybody",
  null,
  7,
  {},
  { roles: [] },
  { roles: "editor" },
  { roles: ["editor"], anyOf: ["admin"] },
  { noneOf: ["admin"] },
  { anyOf: [{ allOf: [] }] },
])("an unknown rule is stricter than any other, but equal to itself: %j", (strange) => {
  expect(isStricter(strange, "everyone")).toBe(true);
  expect(isStricter("systemAdmin", strange)).toBe(true);
  expect(isStricter(strange, structuredClone(strange))).toBe(false);
});

test("a rule with too many cases counts as stricter, and is decided quickly", () => {
  const choice = (index: number) =>
    access.roles(`a${index}`, `b${index}`, `c${index}`, `d${index}`);
  const before = access.allOf(...Array.from({ length: 30 }, (_, index) => choice(index)));

  expect(isStricter(stored(before), "authenticated")).toBe(true);
  expect(isStricter("authenticated", stored(before))).toBe(true);
});
