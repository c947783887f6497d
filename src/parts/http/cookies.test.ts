import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createServerLogger } from "../../base/log/server-logger.ts";
import { assertCookie } from "./cookies.ts";
import { type HttpRequest, requestView } from "./message.ts";
import { parseCookies } from "./request-cookies.ts";
import { serializeCookie } from "./serialize-cookie.ts";

describe("parseCookies", () => {
  test.each<[string, string | undefined, Record<string, string>]>([
    ["no header", undefined, {}],
    ["an empty header", "", {}],
    ["one cookie", "a=1", { a: "1" }],
    ["two cookies", "a=1; b=2", { a: "1", b: "2" }],
    ["spaces around a name and a value", "  a =  1  ;b=2", { a: "1", b: "2" }],
    ["a value with an equals sign", "a=b=c", { a: "b=c" }],
    ["an empty value", "a=", { a: "" }],
    ["a quoted value", 'a="b c"', { a: "b c" }],
    ["a quote at the start only", 'a="b', { a: '"b' }],
    ["a quote at the end only", 'a=b"', { a: 'b"' }],
    ["percent-encoding", "a=%C3%A4%20b", { a: "ä b" }],
    ["malformed percent-encoding", "a=%zz; b=1", { a: "%zz", b: "1" }],
    ["a repeated name", "a=1; a=2", { a: "1" }],
    ["a part without an equals sign", "a; b=1", { b: "1" }],
    ["a part without a name", "=1; b=2", { b: "2" }],
    ["a blank name", "  =1; b=2", { b: "2" }],
    ["a name of one letter without spaces", "a=1;b=2", { a: "1", b: "2" }],
  ])("reads %s", (_what, header, cookies) => {
    expect({ ...parseCookies(header) }).toEqual(cookies);
  });

  test("returns an object without a prototype", () => {
    const cookies = parseCookies("__proto__=1; constructor=2");
    expect(Object.getPrototypeOf(cookies)).toBeNull();
    expect(Object.entries(cookies)).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
  });

  test("reads 100 cookies and ignores the rest", () => {
    const header = (count: number) => Array.from({ length: count }, (_, i) => `c${i}=1`).join(";");
    expect(Object.keys(parseCookies(header(100)))).toHaveLength(100);
    const names = Object.keys(parseCookies(header(102)));
    expect([names.length, names.at(-1)]).toEqual([100, "c99"]);
  });
});

describe("serializeCookie", () => {
  const served = { development: false };

  test("sets the safe attributes by default", () => {
    expect(serializeCookie("a", { value: "1" }, served)).toBe(
      "a=1; Path=/; HttpOnly; Secure; SameSite=Lax",
    );
  });

  test("leaves out Secure in development, unless the cookie asks for it", () => {
    const development = { development: true };
    expect(serializeCookie("a", { value: "1" }, development)).toBe(
      "a=1; Path=/; HttpOnly; SameSite=Lax",
    );
    expect(serializeCookie("a", { value: "1", secure: true }, development)).toBe(
      "a=1; Path=/; HttpOnly; Secure; SameSite=Lax",
    );
  });

  test("writes all options", () => {
    const cookie = {
      value: "1",
      httpOnly: false,
      secure: false,
      sameSite: "Strict",
      maxAgeSeconds: 60,
      path: "/files",
    };
    expect(serializeCookie("a", cookie, served)).toBe(
      "a=1; Path=/files; Max-Age=60; SameSite=Strict",
    );
  });

  test("writes a lifetime of zero, which deletes the cookie", () => {
    expect(serializeCookie("a", { value: "", maxAgeSeconds: 0 }, served)).toContain("; Max-Age=0;");
  });

  test("encodes the value, even half a surrogate pair", () => {
    expect(serializeCookie("a", { value: "ä;\ud800" }, served)).toMatch(/^a=%C3%A4%3B%EF%BF%BD; /);
  });

  test("throws for a cookie that assertCookie refuses", () => {
    expect(() => serializeCookie("a b", { value: "1" }, served)).toThrow(TypeError);
  });
});

describe("assertCookie", () => {
  test.each<[string, string, unknown]>([
    ["a name of token characters", "!#$%&'*+-.^_`|~09azAZ", { value: "" }],
    ["SameSite None", "a", { value: "1", sameSite: "None" }],
    ["a path with all its characters", "a", { value: "1", path: "/ :<~" }],
    ["undefined options", "a", { value: "1", httpOnly: undefined, maxAgeSeconds: undefined }],
    ["a lifetime below zero", "a", { value: "1", maxAgeSeconds: -1 }],
  ])("accepts %s", (_what, name, cookie) => {
    expect(() => assertCookie(name, cookie)).not.toThrow();
  });

  const token = "the name is not a token of RFC 6265";
  const noPath = "does not start with / or has a character that a path cannot have";
  test.each<[string, unknown, string]>([
    ["", { value: "1" }, `reply: cookie "": ${token}`],
    ["a b", { value: "1" }, `reply: cookie "a b": ${token}`],
    ["a=", { value: "1" }, `reply: cookie "a=": ${token}`],
    [";a", { value: "1" }, `reply: cookie ";a": ${token}`],
    ["a", "text", 'reply: cookie a: it is not an object; pass { value: "..." }'],
    ["a", null, 'reply: cookie a: it is not an object; pass { value: "..." }'],
    [
      "a",
      { value: "1", maxAge: 1 },
      'reply: cookie a: unknown option "maxAge"; known are value, httpOnly, secure, sameSite, maxAgeSeconds, path',
    ],
    ["a", {}, "reply: cookie a: its value is of type undefined; give it text"],
    ["a", { value: 1 }, "reply: cookie a: its value is of type number; give it text"],
    ["a", { value: "1", httpOnly: 1 }, "reply: cookie a: httpOnly 1 is not true or false"],
    ["a", { value: "1", secure: "no" }, 'reply: cookie a: secure "no" is not true or false'],
    ["a", { value: "1", path: 1 }, `reply: cookie a: path 1 ${noPath}`],
    ["a", { value: "1", path: "files" }, `reply: cookie a: path "files" ${noPath}`],
    ["a", { value: "1", path: "x/" }, `reply: cookie a: path "x/" ${noPath}`],
    ["a", { value: "1", path: "/a;b" }, `reply: cookie a: path "/a;b" ${noPath}`],
    [
      "a",
      { value: "1", sameSite: "lax" },
      'reply: cookie a: sameSite "lax" is not Strict, Lax or None',
    ],
    [
      "a",
      { value: "1", maxAgeSeconds: 1.5 },
      "reply: cookie a: maxAgeSeconds 1.5 is not a whole number",
    ],
    [
      "__Secure-a",
      { value: "1", secure: false },
      "reply: cookie __Secure-a: browsers discard it with secure: false; leave secure out",
    ],
    [
      "a",
      { value: "1", secure: false, sameSite: "None" },
      "reply: cookie a: browsers discard it with secure: false; leave secure out",
    ],
    [
      "__Host-a",
      { value: "1", path: "/files" },
      'reply: cookie __Host-a: browsers discard it with path "/files"; leave path out',
    ],
  ])("refuses the cookie %j with %j", (name, cookie, message) => {
    expect(() => assertCookie(name, cookie)).toThrow(new TypeError(message));
  });

  test("never shows the value in the error", () => {
    expect(() => assertCookie("a", { value: ["secret"] })).toThrow(/^(?!.*secret)/);
  });
});

describe("cookies", () => {
  test.each([
    [undefined, {}],
    ["a=1; b=2", { a: "1", b: "2" }],
    ["a=1; a=2", { a: "1" }],
    ['a="quoted"; b=%C3%A4; c=%zz', { a: "quoted", b: "ä", c: "%zz" }],
    ["novalue; =noname; a=b=c", { a: "b=c" }],
    ["SID=1; sid=2; Sid=3; SID=4", { SID: "1", sid: "2", Sid: "3" }],
    ["__proto__=x", Object.assign(Object.create(null), { ["__proto__"]: "x" })],
  ])("%s is parsed leniently", (header, expected) => {
    const cookies = parseCookies(header);
    expect(Object.getPrototypeOf(cookies)).toBeNull();
    expect(Object.entries(cookies)).toEqual(Object.entries(expected));
  });

  test("beyond the first hundred are ignored", () => {
    const header = Array.from({ length: 200 }, (_, index) => `c${index}=1`).join("; ");
    expect(Object.keys(parseCookies(header))).toHaveLength(100);
  });

  test("carry the attributes of their options", () => {
    const cookie = {
      value: "1",
      httpOnly: false,
      secure: false,
      sameSite: "Strict",
      maxAgeSeconds: 60,
      path: "/x",
    } as const;
    expect(serializeCookie("a", cookie, { development: false })).toBe(
      "a=1; Path=/x; Max-Age=60; SameSite=Strict",
    );
    expect(serializeCookie("a", { value: "1" }, { development: true })).toBe(
      "a=1; Path=/; HttpOnly; SameSite=Lax",
    );
  });

  test.each([
    ["__Host-session", { value: "1" }, "Lax"],
    ["__Secure-session", { value: "1" }, "Lax"],
    ["__host-session", { value: "1", path: "/" }, "Lax"],
    ["session", { value: "1", sameSite: "None" }, "None"],
  ] as const)("%s with %j is secure in development too", (name, cookie, sameSite) => {
    expect(serializeCookie(name, cookie, { development: true })).toBe(
      `${name}=1; Path=/; HttpOnly; Secure; SameSite=${sameSite}`,
    );
  });

  test.each([
    ["a;b", { value: "1" }],
    ["", { value: "1" }],
    ["a", { value: "1", path: "/x; Domain=evil" }],
    ["a", { value: "1", path: "x" }],
    ["a", { value: "1", sameSite: "No" as never }],
    ["a", { value: "1", path: 1 as never }],
    ["a", { value: "1", maxAgeSeconds: 1.5 }],
    ["a", { value: "1", secure: 0 as never }],
  ])("named %j with %j are refused", (name, cookie) => {
    expect(() => serializeCookie(name, cookie, { development: false })).toThrow(TypeError);
  });

  test("are parsed without throwing, for any header", () => {
    const codeUnit = fc.oneof(
      fc.constantFrom("=", ";", "%", '"'),
      fc.nat(0xffff).map((code) => String.fromCharCode(code)),
    );
    fc.assert(
      fc.property(fc.string({ unit: codeUnit }), (header) => {
        const cookies = parseCookies(header);
        expect(Object.getPrototypeOf(cookies)).toBeNull();
        expect(Object.keys(cookies).every((name) => header.includes(name))).toBe(true);
      }),
    );
  });

  test("are read back as written, for any name and value", () => {
    const cookieName = fc.oneof(
      fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,20}$/),
      fc.constant("__proto__"),
    );
    fc.assert(
      fc.property(cookieName, fc.string({ unit: "grapheme" }), (name, value) => {
        const [pair = "", ...attributes] = serializeCookie(
          name,
          { value },
          { development: false },
        ).split("; ");
        expect(Object.entries(parseCookies(pair))).toEqual([[name, value]]);
        expect(attributes).toEqual(["Path=/", "HttpOnly", "Secure", "SameSite=Lax"]);
      }),
    );
  });
});

test("logging a request shows no cookie, in data, in context and in a string", () => {
  const lines: string[] = [];
  const log = createServerLogger({
    environment: "production",
    env: {},
    clock: { now: () => 0 },
    write: (line) => lines.push(line),
  });
  const cookie = "__Host-session=s3cret";
  const request = requestView(
    {
      method: "GET",
      path: "/",
      headers: { cookie, host: "h" },
      ip: "1.2.3.4",
    } as unknown as HttpRequest, // all that its view reads
    new Uint8Array(),
  );
  log.info("data", { request });
  log.child({ requestId: "r1" }).child({ cookies: cookie }).info("context", { request });
  log.info("text", { cookies: cookie, event: { cookies: [cookie] } });
  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toContain("s3cret");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    request: { path: "/", headers: { host: "h" }, cookies: "[redacted]" },
  });
});
