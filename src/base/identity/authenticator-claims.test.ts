import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { identify, parseGatewayRoles, parseRoles, saysWho } from "./authenticator.ts";

describe("identify", () => {
  test("creates a frozen user from the default claims", () => {
    const { user } = identify({
      sub: "ann",
      tenantId: "acme",
      roles: ["admin", "admin", "x"],
      exp: 1,
    });
    expect(user).toEqual({ id: "ann", tenantId: "acme", roles: ["admin", "x"], kind: "user" });
    expect(Object.isFrozen(user)).toBe(true);
    expect(Object.isFrozen(user?.roles)).toBe(true);
  });

  test("reads claim names literally, never as paths", () => {
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
    expect(identify(claims, names).user).toEqual({
      id: "ann",
      tenantId: "acme",
      roles: ["a"],
      kind: "user",
    });
    expect(
      identify({ sub: "ann", "a.b": "acme", a: { b: "evil" } }, { tenant: "a.b" }).user?.tenantId,
    ).toBe("acme");
    expect(identify({ sub: "ann", a: { b: "evil" } }, { tenant: "a.b" })).toEqual({
      user: undefined,
      problem: "the a.b claim is missing",
    });
  });

  test("never reads an inherited property as a claim", () => {
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
  ])("rejects a user, a tenant or a role that is or has %s", (_, value) => {
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

  test("accepts IDs in other scripts, with emoji, spaces and 256 characters", () => {
    for (const id of ["Zoë", "李小龍", "😀", "a b#c/d", "a".repeat(256)]) {
      expect(identify({ sub: id, tenantId: id }).user).toEqual({
        id,
        tenantId: id,
        roles: [],
        kind: "user",
      });
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
  ])("reads a token's text as one role: %o", (claim, roles) => {
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
  ])("rejects %s of a token", (_, claim) => {
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
  ])("%# reads %o from any authorizer", (claim, roles) => {
    for (const by of authorizers) expect(parseGatewayRoles(claim, by)).toEqual(roles);
  });

  test("reads a list in brackets only from the JWT authorizer of an HTTP API", () => {
    expect(parseGatewayRoles("[admin user]", "jwt")).toEqual(["admin", "user"]);
    expect(parseGatewayRoles("[7]", "jwt")).toEqual(["7"]);
    expect(parseGatewayRoles("[ ]", "jwt")).toEqual([]);
    expect(parseGatewayRoles("[Sales,admin]", "jwt")).toEqual(["Sales,admin"]);
    for (const claim of ["[admin user]", "[admin]", "[7]"]) {
      expect(parseGatewayRoles(claim, "cognito")).toBeUndefined();
      expect(parseGatewayRoles(claim, "lambda")).toBeUndefined();
    }
  });

  test("splits at commas only for the Cognito authorizer of a REST API", () => {
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
  ])("rejects %s", (_, claim) => {
    for (const by of authorizers) expect(parseGatewayRoles(claim, by)).toBeUndefined();
  });

  test("reads the same names from every notation of a gateway", () => {
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

  test("never throws, and returns only names that are complete in the claim", () => {
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
