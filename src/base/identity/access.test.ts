import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AccessRule,
  type AuthenticatedUser,
  access,
  allows,
  anonymous,
  describeRule,
  isAccessRule,
  needsIdentity,
  type TenantUser,
  type User,
} from "./access.ts";

type NamedCaller = Omit<User, "kind">;
const user = (...roles: string[]): NamedCaller => ({ id: "ann", tenantId: "acme", roles });
/** What plain JavaScript might pass. */
const untyped = (value: unknown) => value as never;

describe("allows", () => {
  const { everyone, authenticated, tenant, admin, systemAdmin, roles, anyOf, allOf } = access;
  test.each<[AccessRule, NamedCaller, boolean]>([
    [everyone, anonymous, true],
    [everyone, user(), true],
    [authenticated, anonymous, false],
    [authenticated, user(), true],
    [tenant, anonymous, false],
    [tenant, user(), true],
    [tenant, { id: undefined, tenantId: "acme", roles: [] }, true],
    [tenant, { id: "ann", tenantId: undefined, roles: [] }, false],
    [allOf(tenant, authenticated), { id: undefined, tenantId: "acme", roles: [] }, false],
    [anyOf(tenant, admin), { id: undefined, tenantId: "acme", roles: [] }, true],
    [admin, user(), false],
    [admin, user("admin"), true],
    [admin, user("systemAdmin"), true],
    [admin, user("Admin"), false],
    [admin, user("administrator", "not-admin"), false],
    [systemAdmin, user("admin"), false],
    [systemAdmin, user("systemAdmin"), true],
    [roles("editor", "owner"), user("owner"), true],
    [roles("editor", "owner"), user("editor,owner"), false],
    [roles("editor", "owner"), user("admin", "systemAdmin"), false],
    [anyOf(roles("editor"), admin), user("admin"), true],
    [anyOf(roles("editor"), admin), user("owner"), false],
    [anyOf(everyone, admin), anonymous, true],
    [allOf(roles("editor"), admin), user("admin"), false],
    [allOf(roles("editor"), admin), user("admin", "editor"), true],
    [allOf(everyone, authenticated), anonymous, false],
  ])("%# allows %o for %o: %s", (rule, caller, expected) => {
    expect(allows(rule, caller)).toBe(expected);
  });

  test("requires a user and a tenant wherever a role is required", () => {
    const halves: NamedCaller[] = [
      { id: undefined, tenantId: "acme", roles: ["admin", "systemAdmin", "editor"] },
      { id: "ann", tenantId: undefined, roles: ["admin", "systemAdmin", "editor"] },
      { id: "", tenantId: "acme", roles: ["admin", "systemAdmin", "editor"] },
    ];
    for (const half of halves) {
      for (const rule of [
        authenticated,
        admin,
        systemAdmin,
        roles("editor"),
        anyOf(admin, authenticated),
        allOf(admin),
      ]) {
        expect(allows(rule, half)).toBe(false);
      }
    }
  });

  test("never allows a caller by a rule that was tampered with", () => {
    expect(allows({ ...allOf(admin), rules: [] }, user("admin"))).toBe(false);
    expect(allows({ ...anyOf(admin), rules: [] }, user("admin"))).toBe(false);
    expect(allows({ ...roles("a"), names: [] }, user("a"))).toBe(false);
    expect(allows({ ...everyone, kind: untyped("all") }, user("admin"))).toBe(false);
  });

  test("agrees with a naive model of sets for any rule", () => {
    const names = ["admin", "systemAdmin", "editor", "owner"];
    type Case = { rule: AccessRule; model: (caller: NamedCaller) => boolean };
    const signedIn = (caller: NamedCaller) =>
      caller.id !== undefined && caller.tenantId !== undefined;
    const one = (wanted: string[]) => (caller: NamedCaller) =>
      signedIn(caller) && wanted.filter((name) => new Set(caller.roles).has(name)).length > 0;
    const { rule: anyCase } = fc.letrec<{ rule: Case }>((tie) => ({
      rule: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<Case>(
          { rule: everyone, model: () => true },
          { rule: authenticated, model: signedIn },
          { rule: tenant, model: ({ tenantId }) => tenantId !== undefined },
          { rule: admin, model: one(["admin", "systemAdmin"]) },
          { rule: systemAdmin, model: one(["systemAdmin"]) },
        ),
        fc
          .array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 })
          .map((some) => ({ rule: roles(...some), model: one(some) })),
        fc.array(tie("rule"), { minLength: 1, maxLength: 3 }).map((parts) => ({
          rule: anyOf(...parts.map((part) => part.rule)),
          model: (caller: NamedCaller) => parts.filter((part) => part.model(caller)).length > 0,
        })),
        fc.array(tie("rule"), { minLength: 1, maxLength: 3 }).map((parts) => ({
          rule: allOf(...parts.map((part) => part.rule)),
          model: (caller: NamedCaller) => parts.filter((part) => !part.model(caller)).length === 0,
        })),
      ),
    }));
    const caller = fc.record({
      id: fc.constantFrom("ann", undefined),
      tenantId: fc.constantFrom("acme", undefined),
      roles: fc.subarray(names),
    });
    fc.assert(
      fc.property(anyCase, caller, ({ rule, model }, someone) => {
        expect(allows(rule, someone)).toBe(model(someone));
        expect(needsIdentity(rule)).toBe(!model(anonymous));
        expect(isAccessRule(rule)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the type of a rule", () => {
  const { everyone, authenticated, tenant, admin, systemAdmin, roles, anyOf, allOf } = access;
  // Each has to compile: what the type says of the caller, the rule has to ask for.
  const signedIn: readonly AccessRule<AuthenticatedUser>[] = [
    ...[
      authenticated,
      admin,
      systemAdmin,
      roles("editor"),
      anyOf(admin),
      anyOf(admin, roles("editor")),
    ],
    ...[
      anyOf(allOf(everyone, admin), allOf(tenant, admin)),
      allOf(admin),
      allOf(everyone, admin),
      allOf(tenant, authenticated),
    ],
    ...[
      allOf(everyone, anyOf(everyone, admin), admin),
      allOf(...[admin, systemAdmin].slice(1)),
      anyOf(...[admin].slice()),
    ],
  ];
  const halves: readonly NamedCaller[] = [
    anonymous,
    { id: undefined, tenantId: "acme", roles: ["admin", "systemAdmin", "editor"] },
    { id: "ann", tenantId: undefined, roles: ["admin", "systemAdmin", "editor"] },
  ];

  test.each(signedIn)("%# promises user and tenant only if nobody else is admitted: %o", (rule) => {
    for (const half of halves) expect(allows(rule, half)).toBe(false);
    expect(needsIdentity(rule)).toBe(true);
  });

  const ofTenants: readonly AccessRule<TenantUser>[] = [
    ...[
      tenant,
      anyOf(tenant, admin),
      anyOf(admin, tenant),
      allOf(tenant),
      allOf(everyone, tenant),
      allOf(tenant, everyone),
    ],
    ...[
      allOf(everyone, anyOf(tenant, authenticated), everyone),
      allOf(...[tenant, admin].slice(1)),
      anyOf(...[tenant].slice()),
    ],
  ];
  test.each(ofTenants)(
    "%# promises a tenant only if no caller without one is admitted: %o",
    (rule) => {
      for (const half of halves.filter(({ tenantId }) => tenantId === undefined))
        expect(allows(rule, half)).toBe(false);
      expect(needsIdentity(rule)).toBe(true);
    },
  );

  test("promises nothing if other callers may be admitted", () => {
    const open: readonly AccessRule[] = [
      everyone,
      anyOf(everyone, admin),
      allOf(everyone),
      anyOf(admin, allOf(everyone, everyone)),
      allOf(everyone, ...[admin].slice(1)),
      [everyone, admin][0] ?? admin,
    ];
    for (const rule of open) expect(allows(rule, anonymous)).toBe(true);
    // @ts-expect-error anonymous callers too
    const promises: readonly AccessRule<AuthenticatedUser>[] = open;
    expect(promises).toBe(open);
    // @ts-expect-error one of two
    anyOf(everyone, admin) satisfies AccessRule<AuthenticatedUser>;
    // @ts-expect-error a run of the system has a tenant and no user
    tenant satisfies AccessRule<AuthenticatedUser>;
    // @ts-expect-error one of two
    anyOf(tenant, admin) satisfies AccessRule<AuthenticatedUser>;
    // @ts-expect-error the list may be empty
    allOf(everyone, ...[admin].slice(1)) satisfies AccessRule<AuthenticatedUser>;
    // @ts-expect-error nobody asks
    allOf(everyone) satisfies AccessRule<AuthenticatedUser>;
  });
});

describe("the factories", () => {
  test.each([
    ["roles without names", () => access.roles(), /there are no roles; pass at least one/],
    [
      "roles with an array",
      () => access.roles(untyped(["admin"])),
      /argument 1 is not a role name/,
    ],
    ["roles with a blank name", () => access.roles("admin", " "), /argument 2 is not a role name/],
    [
      "roles with undefined",
      () => access.roles(untyped(undefined)),
      /argument 1 is not a role name/,
    ],
    ["anyOf of nothing", () => access.anyOf(), /access\.anyOf\(\): no rule is given/],
    ["allOf of nothing", () => access.allOf(), /access\.allOf\(\): no rule is given/],
    [
      "anyOf with an array",
      () => access.anyOf(untyped([access.admin])),
      /argument 1 is not an access rule/,
    ],
    [
      "allOf with a name",
      () => access.allOf(access.admin, untyped("editor")),
      /argument 2 is not an access rule/,
    ],
    [
      "allOf with undefined",
      () => access.allOf(untyped(undefined)),
      /argument 1 is not an access rule/,
    ],
    [
      "allOf with a function",
      () => access.allOf(untyped(access.roles)),
      /argument 1 is not an access rule/,
    ],
  ])("reject %s", (_, make, message) => {
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  test("create frozen data, independent of their arguments", () => {
    const names = ["editor"];
    const rule = access.anyOf(access.roles(...names), access.admin);
    names.push("everyone");
    expect(describeRule(rule)).toBe("anyOf(roles(editor), admin)");
    for (const part of [
      access,
      rule,
      rule.rules,
      rule.names,
      rule.rules[0],
      rule.rules[0]?.names,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect(JSON.parse(JSON.stringify(access.roles("a")))).toEqual({
      kind: "roles",
      names: ["a"],
      rules: [],
    });
  });
});

describe("isAccessRule", () => {
  test.each([
    undefined,
    null,
    "admin",
    () => true,
    {},
    [],
    { kind: "everyone", names: [], rules: [] },
    { ...access.everyone, kind: "nobody" },
    structuredClone({ kind: access.admin.kind }),
  ])("rejects %o", (value) => {
    expect(isAccessRule(value)).toBe(false);
  });

  test("accepts a rule from another copy of the package", () => {
    expect(
      isAccessRule({ [Symbol.for("keelson.access")]: true, kind: "admin", names: [], rules: [] }),
    ).toBe(true);
  });
});

test.each([
  [access.everyone, "everyone", false],
  [access.authenticated, "authenticated", true],
  [access.tenant, "tenant", true],
  [access.admin, "admin", true],
  [access.systemAdmin, "systemAdmin", true],
  [access.roles("editor", "owner"), "roles(editor, owner)", true],
  [access.anyOf(access.admin, access.everyone), "anyOf(admin, everyone)", false],
  [access.allOf(access.admin, access.everyone), "allOf(admin, everyone)", true],
  [access.allOf(access.everyone), "allOf(everyone)", false],
])(
  "%# describes a rule as it is written, and whether it needs a signed-in caller: %o",
  (rule, text, needs) => {
    expect(describeRule(rule)).toBe(text);
    expect(needsIdentity(rule)).toBe(needs);
  },
);
