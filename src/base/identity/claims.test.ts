import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { identify, parseGatewayRoles, parseRoles, saysWho } from "./claims.ts";

describe("identify", () => {
  test("makes a frozen user of the default claims", () => {
    const { user } = identify({
      sub: "ann",
      tenantId: "acme",
      roles: ["admin", "admin", "x"],
      exp: 1,
    });
    expect(user).toEqual({ id: "ann", tenantId: "acme", roles: ["admin", "x"] });
    expect(Object.isFrozen(user)).toBe(true);
    expect(Object.isFrozen(user?.roles)).toBe(true);
  });

  test("takes claim names as they are, never as paths", () => {
    const names = {
      user: "username",
      tenant: "custom:tenantId",
      roles: "https://example.com/roles",
    };
    const claims = {
      username: "ann",
      "custom:tenantId": "acme",
      "https://example.com/roles": ["a"],
      custom: { tenantId: "evil" },
    };
    expect(identify(claims, names).user).toEqual({ id: "ann", tenantId: "acme", roles: ["a"] });
    expect(
      identify({ sub: "ann", "a.b": "acme", a: { b: "evil" } }, { tenant: "a.b" }).user?.tenantId,
    ).toBe("acme");
    expect(identify({ sub: "ann", a: { b: "evil" } }, { tenant: "a.b" })).toEqual({
      user: undefined,
      problem: "the a.b claim is missing",
    });
  });

  test("never takes what an object inherits for a claim", () => {
    expect(identify({ sub: "ann" }, { tenant: "constructor" })).toEqual({
      user: undefined,
      problem: "the constructor claim is missing",
    });
    expect(
      identify({ sub: "ann", tenantId: "acme" }, { roles: "constructor" }).user?.roles,
    ).toEqual([]);
    expect(saysWho({}, { user: "toString", tenant: "valueOf", roles: "constructor" })).toBe(false);
  });

  test.each<[string, unknown]>([
    ["empty", ""],
    ["a number", 7],
    ["null", null],
    ["a list", ["acme"]],
    ["an object", { toString: () => "acme" }],
    ["true", true],
    ["257 characters", "a".repeat(257)],
    ["a line break", "acme\nother"],
    ["NUL", "acme\0"],
    ["DEL", "acme\u007f"],
    ["a C1 control", "acme\u0085"],
    ["half a surrogate pair", "acme\ud83d"],
    ["the other half", "\ude00acme"],
    ["U+FFFE", "acme\ufffe"],
    ["U+FFFF", "\uffffacme"],
  ])("refuses a user, a tenant or a role that is or has %s", (_, value) => {
    expect(identify({ sub: value, tenantId: "acme" })).toEqual({
      user: undefined,
      problem: "the sub claim is not valid",
    });
    expect(identify({ sub: "ann", tenantId: value })).toEqual({
      user: undefined,
      problem: "the tenantId claim is not valid",
    });
    expect(identify({ sub: "ann", tenantId: "acme", roles: ["a", value] })).toEqual({
      user: undefined,
      problem: "the roles claim is not valid",
    });
  });

  test("takes IDs of other scripts, with emoji, spaces and 256 characters", () => {
    for (const id of ["Zoë", "李小龍", "😀", "a b#c/d", "a".repeat(256)]) {
      expect(identify({ sub: id, tenantId: id }).user).toEqual({ id, tenantId: id, roles: [] });
    }
  });
});

describe("parseRoles", () => {
  test.each<[unknown, string[]]>([
    [[], []],
    [
      ["admin", "user", "admin"],
      ["admin", "user"],
    ],
    ["Read-only admin", ["Read-only admin"]],
    ["admin,user", ["admin,user"]],
    ["[admin user]", ["[admin user]"]],
    ['["admin"]', ['["admin"]']],
    [" admin", [" admin"]],
  ])("takes a token's text for one role: %o", (claim, roles) => {
    expect(parseRoles(claim)).toEqual(roles);
  });

  test.each<[string, unknown]>([
    ["an empty text", ""],
    ["a number", 1],
    ["an object", { admin: true }],
    ["a name that is no text", ["admin", 1]],
    ["101 names", Array.from({ length: 101 }, (_, index) => `r${index}`)],
    ["a text of 257 characters", "a".repeat(257)],
    ["a control character", "admin\n"],
  ])("refuses %s of a token", (_, claim) => {
    expect(parseRoles(claim)).toBeUndefined();
  });
});

describe("parseGatewayRoles", () => {
  const authorizers = ["jwt", "cognito", "lambda"] as const;

  test.each<[unknown, string[]]>([
    ["Read-only admin", ["Read-only admin"]],
    [[], []],
    [
      ["admin", "user"],
      ["admin", "user"],
    ],
    [["super admin"], ["super admin"]],
    ["", []],
    ["admin", ["admin"]],
    [" admin ", ["admin"]],
    ["admin user", ["admin user"]],
    ['["admin","super admin"]', ["admin", "super admin"]],
    ['["Sales,admin"]', ["Sales,admin"]],
    ["[]", []],
    ["administrator", ["administrator"]],
  ])("%# reads %o of any authorizer", (claim, roles) => {
    for (const by of authorizers) expect(parseGatewayRoles(claim, by)).toEqual(roles);
  });

  test("only the JWT authorizer of an HTTP API writes lists between brackets", () => {
    expect(parseGatewayRoles("[admin user]", "jwt")).toEqual(["admin", "user"]);
    expect(parseGatewayRoles("[7]", "jwt")).toEqual(["7"]);
    expect(parseGatewayRoles("[ ]", "jwt")).toEqual([]);
    expect(parseGatewayRoles("[Sales,admin]", "jwt")).toEqual(["Sales,admin"]);
    for (const claim of ["[admin user]", "[admin]", "[7]"]) {
      expect(parseGatewayRoles(claim, "cognito")).toBeUndefined();
      expect(parseGatewayRoles(claim, "lambda")).toBeUndefined();
    }
  });

  test("only the Cognito authorizer of a REST API writes lists with commas: a role with one is not two elsewhere", () => {
    expect(parseGatewayRoles("admin, user ,admin", "cognito")).toEqual(["admin", "user"]);
    expect(parseGatewayRoles("Read-only admin,auditor", "cognito")).toEqual([
      "Read-only admin",
      "auditor",
    ]);
    expect(parseGatewayRoles("Sales,admin", "jwt")).toEqual(["Sales,admin"]);
    expect(parseGatewayRoles("Sales,admin", "lambda")).toEqual(["Sales,admin"]);
  });

  test.each<[string, unknown]>([
    ["a number", 1],
    ["null", null],
    ["undefined", undefined],
    ["an object", { admin: true }],
    ["something like a list", { length: 1, 0: "admin" }],
    ["lists in a list", [["admin"]]],
    ["lists in a list as text", "[[admin]]"],
    ["a name that is no text", ["admin", 1]],
    ["an empty name", [""]],
    ["101 names", Array.from({ length: 101 }, (_, index) => `r${index}`)],
    ["101 names as text", JSON.stringify(Array.from({ length: 101 }, (_, index) => `r${index}`))],
    ["more than 8 KiB of text", `admin${" ".repeat(8192)}`],
    ["an open bracket", "[admin"],
    ["a closing bracket", "admin]"],
    ["quotes of some other notation", "'admin'"],
    ["an object as JSON", '{"admin":true}'],
    ["a list of lists as JSON", '[["admin"]]'],
    ["JSON with a control character", '["admin\\u0000"]'],
    ["a tab between names", "admin\tuser"],
  ])("refuses %s", (_, claim) => {
    for (const by of authorizers) expect(parseGatewayRoles(claim, by)).toBeUndefined();
  });

  test("reads the same names from every notation that a gateway uses", () => {
    const name = fc.string({
      unit: fc.constantFrom(..."abcXYZ019-_:./é"),
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(fc.array(name, { maxLength: 20 }), (names) => {
        const expected = [...new Set(names)];
        for (const by of authorizers) {
          expect(parseGatewayRoles(names, by)).toEqual(expected);
          expect(parseGatewayRoles(JSON.stringify(names), by)).toEqual(expected);
        }
        expect(parseGatewayRoles(`[${names.join(" ")}]`, "jwt")).toEqual(expected);
        expect(parseGatewayRoles(names.join(","), "cognito")).toEqual(expected);
      }),
    );
  });

  test("never throws, and gives only names that stand whole in the claim", () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.json(),
      fc.string({ unit: fc.constantFrom(..."[]\"', ad\\") }),
    );
    fc.assert(
      fc.property(anything, fc.constantFrom(...authorizers), (claim, by) => {
        for (const role of parseGatewayRoles(claim, by) ?? []) {
          expect(role.length).toBeGreaterThan(0);
          if (Array.isArray(claim)) expect(claim).toContain(role);
        }
      }),
      { numRuns: 500 },
    );
  });
});
