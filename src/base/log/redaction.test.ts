import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonText, startWalk } from "./json-text.ts";
import { createRedaction, cut, endsPath, quoted, visible } from "./redaction.ts";

const written = (value: unknown, paths?: readonly string[]): unknown => {
  const redaction = createRedaction(paths);
  return JSON.parse(jsonText(value, startWalk(redaction, 50_000), redaction.root));
};
const gone = "[redacted]";

describe("names that are always redacted", () => {
  it.each([
    "authorization",
    "cookie",
    "password",
    "token",
    "secret",
    "set-cookie",
    "proxy-authorization",
  ])("redacts %s in any case and at any depth, for any value", (name) => {
    for (const shown of [
      name,
      name.toUpperCase(),
      `${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    ]) {
      const value = {
        [shown]: "s3cret",
        a: [{ b: { [shown]: { deep: "s3cret" } } }],
        n: { [shown]: null },
      };
      expect(written(value)).toEqual({
        [shown]: gone,
        a: [{ b: { [shown]: gone } }],
        n: { [shown]: gone },
      });
    }
  });

  it.each([
    ...[
      "apiKey",
      "api_key",
      "x-api-key",
      "stripeApiKey",
      "access_token",
      "accessToken",
      "refresh-token",
      "id_token",
    ],
    ...["bearer", "clientAssertion", "client_assertion"],
    ...[
      "clientSecret",
      "client_secret",
      "webhookSecret",
      "dbPassword",
      "newPassword",
      "passwd",
      "passphrase",
      "private_key",
    ],
    ...[
      "secretAccessKey",
      "x-amz-security-token",
      "sessionToken",
      "CSRF-Token",
      "jwt",
      "credentials",
    ],
    ...[
      "AWS_SECRET_ACCESS_KEY",
      "AWS_SESSION_TOKEN",
      "stripe_secret_key",
      "googleAccessToken",
      "oauth_access_token",
    ],
    ...[
      "userRefreshToken",
      "apiKeys",
      "passwords",
      "client_secrets",
      "clientCredentials",
      "db_pwd",
      "api key",
      `${"a".repeat(80)}Password`,
    ],
  ])("include %s", (name) => {
    expect(written({ a: { [name]: "s3cret" } })).toEqual({ a: { [name]: gone } });
  });

  it("redact the value next to a secret's name, as in parameters and tags of AWS", () => {
    const pairs = [
      { name: "x-api-key", value: "s3cret" },
      { Name: "/files/db-password", Value: "s3cret" },
      { Key: "clientSecret", Value: "s3cret" },
    ];
    expect(JSON.stringify(written(pairs))).not.toContain("s3cret");
    expect(written([{ Name: "/files/size", Value: "7" }])).toEqual([
      { Name: "/files/size", Value: "7" },
    ]);
  });

  it("redact cookies by name, in a list and in a string, but not their number", () => {
    const cookies = { "__Host-session": "s3cret" };
    expect(written({ headers: { cookie: "__Host-session=s3cret" }, cookies })).toEqual({
      headers: { cookie: gone },
      cookies: gone,
    });
    for (const value of [["__Host-session=s3cret"], "__Host-session=s3cret", new Map([["a", "b"]])])
      expect(written({ cookies: value, Cookies: value })).toEqual({ cookies: gone, Cookies: gone });
    expect(written({ cookies: 2, Cookies: 0 })).toEqual({ cookies: 2, Cookies: 0 });
  });

  it("do not include names that only contain one of them", () => {
    const value = {
      tokens: 1,
      passwordless: true,
      nextToken: "x",
      cookies: 2,
      key: "k",
      accessKeyId: "AKIA",
      idempotencyKey: "i",
    };
    expect(written(value)).toEqual(value);
  });

  it("apply in Maps, in errors and their causes, and in the result of toJSON", () => {
    const cause = Object.assign(new Error("inner"), { token: "s3cret" });
    const error = Object.assign(new Error("outer", { cause }), { password: "s3cret", code: "E1" });
    expect(written(error)).toMatchObject({
      code: "E1",
      password: gone,
      cause: { message: "inner", token: gone },
    });
    expect(written(new Map([["Cookie", "s3cret"]]))).toEqual({ Cookie: gone });
    expect(
      written(
        new Map<unknown, string>([
          ["Cookie", "s3cret"],
          [1, "one"],
        ]),
      ),
    ).toEqual([
      ["Cookie", gone],
      [1, "one"],
    ]);
    expect(written({ toJSON: () => ({ token: "s3cret" }) })).toEqual({ token: gone });
  });

  it("apply to headers in every form: raw lists, entries, names with values", () => {
    expect(written(["Host", "h", "Authorization", "s3cret", "Accept", "a"])).toEqual([
      "Host",
      "h",
      "Authorization",
      gone,
      "Accept",
      "a",
    ]);
    expect(
      written([
        ["cookie", "s3cret"],
        ["host", "h"],
      ]),
    ).toEqual([
      ["cookie", gone],
      ["host", "h"],
    ]);
    expect(
      written([
        { name: "Set-Cookie", value: "s3cret" },
        { key: "Authorization", value: "s3cret" },
        { name: "host", value: "h" },
      ]),
    ).toEqual([
      { name: "Set-Cookie", value: gone },
      { key: "Authorization", value: gone },
      { name: "host", value: "h" },
    ]);
  });
});

describe("paths of the application", () => {
  it("redact exactly the position of a path", () => {
    expect(written({ user: { email: "e", id: 1 }, email: "kept" }, ["user.email"])).toEqual({
      user: { email: gone, id: 1 },
      email: "kept",
    });
  });

  it("treat * as any one name, and an index as a name", () => {
    const value = {
      cards: [{ number: 1 }, { number: 2, name: "n" }],
      a: { iban: "i", b: { iban: "kept" } },
    };
    expect(written(value, ["cards.*.number", "*.iban"])).toEqual({
      cards: [{ number: gone }, { number: gone, name: "n" }],
      a: { iban: gone, b: { iban: "kept" } },
    });
    expect(written({ list: ["a", "b"] }, ["list.1"])).toEqual({ list: ["a", gone] });
    expect(written({ list: ["a", "b"] }, ["*"])).toEqual({ list: gone });
  });

  it("follow a path into Maps and errors, and two paths with a common beginning", () => {
    expect(written({ m: new Map([["pin", 1]]) }, ["m.pin", "m.puk"])).toEqual({ m: { pin: gone } });
    expect(written({ e: Object.assign(new Error("x"), { stack: "s" }) }, ["e.message"])).toEqual({
      e: { name: "Error", message: gone, stack: "s" },
    });
    expect(written({ a: { b: 1, c: 2 } }, ["*.b", "a.c"])).toEqual({ a: { b: gone, c: gone } });
    expect(written({ a: { b: 1, c: 2 } }, ["*", "a.c"])).toEqual({ a: gone });
  });

  it("end no path before its first name, and none exist without paths", () => {
    expect(endsPath(createRedaction(["a"]).root)).toBe(false);
    expect(createRedaction().root).toEqual([]);
  });

  it("treat * in data like any other name", () => {
    expect(written({ "*": { x: 1 }, y: 1 }, ["*.x"])).toEqual({ "*": { x: gone }, y: 1 });
  });
});

describe("member", () => {
  it("bounds and escapes a name, and caches a limited number", () => {
    const { member } = createRedaction();
    expect(member("a\nb").json).toBe('"a\\nb":');
    expect(member("x".repeat(1_000)).json).toBe(`"${"x".repeat(256)}...[744 characters cut]":`);
    for (let index = 0; index < 1_100; index += 1) member(`name-${index}`);
    expect(member("name-3")).toBe(member("name-3"));
    const isRemembered = (name: string, { member: fresh } = createRedaction()) =>
      Object.is(fresh(name), fresh(name));
    expect([isRemembered("x".repeat(64)), isRemembered("x".repeat(65))]).toEqual([true, false]);
    expect(member("name-1050")).not.toBe(member("name-1050"));
    expect(member("name-1050")).toEqual({ json: '"name-1050":', secret: false });
  });
});

const anyText = fc.string({
  unit: fc.oneof(
    fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
    fc.string({ unit: "grapheme" }),
  ),
});
/** What may end a line or act on a terminal: C0, DEL, C1, separators, direction marks, BOM. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const acting = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const loneSurrogate = /\p{Surrogate}/u;

describe("quoted", () => {
  it("returns JSON of exactly the text, without active characters", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const json = quoted(text);
        expect(JSON.parse(json)).toBe(text);
        expect(json).not.toMatch(acting);
        expect(json).not.toMatch(loneSurrogate);
      }),
    );
  });

  it("escapes line ends of every kind, ANSI escapes, direction marks and lone surrogates, and keeps letters", () => {
    expect(quoted("a\nb\r\u0085\u2028\u2029\u001b[31m\u009b\u202e\ud800z")).toBe(
      '"a\\nb\\r\\u0085\\u2028\\u2029\\u001b[31m\\u009b\\u202e\\ud800z"',
    );
    expect(quoted('Straße 東京 😀 "\\')).toBe('"Straße 東京 😀 \\"\\\\"');
  });
});

describe("visible", () => {
  it("leaves no active or invalid character, and stays on one line", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = visible(text);
        expect(shown).not.toMatch(acting);
        expect(shown).not.toMatch(loneSurrogate);
      }),
    );
  });

  it("keeps letters, quotes and backslashes", () => {
    expect(visible('say "ä"\\\n😀')).toBe('say "ä"\\\\u000a😀');
  });
});

describe("cut", () => {
  it("keeps a text of exactly the length, and says how much of a longer one is missing", () => {
    expect(cut("abc", 3)).toBe("abc");
    expect(cut("abcd", 3)).toBe("abc...[1 characters cut]");
    expect(cut("abcd", 0)).toBe("...[4 characters cut]");
  });

  it("never splits a surrogate pair", () => {
    expect(cut("a😀b", 2)).toBe("a...[3 characters cut]");
    expect(cut("a😀b", 3)).toBe("a😀...[1 characters cut]");
    expect(cut("\u{10000}b", 1)).toBe("...[3 characters cut]");
    expect(cut("\u{10ffff}b", 1)).toBe("...[3 characters cut]");
  });
});
