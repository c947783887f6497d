import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ValidationError } from "../../base/errors/errors.ts";
import { parseBody, parseForm, readInput, validateInput } from "./input.ts";
import type { BodyKind } from "./message.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const json = "application/json";
const read = ({
  params = {},
  query = "",
  method = "POST",
  contentType = json,
  kind = "json",
  isChecked = false,
  ...body
}: {
  params?: Record<string, unknown>;
  query?: string;
  method?: string;
  contentType?: string;
  kind?: BodyKind;
  isChecked?: boolean;
  bytes?: Uint8Array;
  form?: Record<string, unknown>;
}) =>
  readInput(
    { query, method, headers: { "content-type": contentType } },
    { body: kind, input: isChecked ? z.unknown() : undefined },
    Object.assign(Object.create(null), params),
    { bytes: bytes(""), ...body },
  );

describe("the request input", () => {
  test("combines path, query and body in one object without a prototype", () => {
    const input = read({
      params: { id: "7" },
      query: "q=a+b&tag=x&tag=y&flag&&empty=",
      bytes: bytes('{"name":"n"}'),
    });

    expect(Object.getPrototypeOf(input)).toBeNull();
    expect({ ...input }).toEqual({
      id: "7",
      q: "a b",
      tag: ["x", "y"],
      flag: "",
      empty: "",
      name: "n",
    });
  });

  test("refuses and names a field that comes from two sources", () => {
    const attempt = () => read({ params: { id: "7" }, query: "id=8&n=1", bytes: bytes('{"n":2}') });

    expect(attempt).toThrow(ValidationError);
    expect(fieldsOf(attempt)).toEqual(["id", "n"]);
  });

  test("ignores the body of a GET or HEAD request", () => {
    expect({ ...read({ method: "GET", bytes: bytes("not json at all") }) }).toEqual({});
    expect({ ...read({ method: "HEAD", bytes: bytes("x") }) }).toEqual({});
  });

  test.each(["[1]", "null", '"text"', "7", "true"])("refuses the JSON %s as an object", (text) => {
    const attempt = () => read({ bytes: bytes(text) });
    expect(attempt).toThrow(ValidationError);
    expect(errorOf(attempt).fields).toEqual([{ field: "body", error: "must be an object" }]);
  });

  test("holds a JSON value in body, an object too", () => {
    for (const value of [[1], null, "text", 7, { a: 1 }])
      expect({ ...read({ kind: "value", bytes: bytes(JSON.stringify(value)) }) }).toEqual({
        body: value,
      });
    expect({ ...read({ kind: "value", bytes: bytes("") }) }).toEqual({});
  });

  test("has no prototype, and never pollutes another object's", () => {
    const untouched = Object.getOwnPropertyNames(Object.prototype);
    const name = fc.oneof(
      fc.constantFrom("__proto__", "constructor", "prototype", "toString"),
      fc.string(),
    );
    fc.assert(
      fc.property(
        fc.dictionary(name, fc.jsonValue()),
        fc.array(fc.tuple(name, fc.string())),
        (body, pairs) => {
          const query = pairs.map(
            ([key, value]) => `${encodeURIComponent(key.toString())}=${encodeURIComponent(value)}`,
          );
          try {
            expectPrototypeFree(
              read({ query: query.join("&"), bytes: bytes(JSON.stringify(body)) }),
            );
          } catch (error) {
            if (!(error instanceof ValidationError) && !(error instanceof URIError)) throw error;
          }
          expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(untouched);
        },
      ),
    );
    const hostile = read({
      bytes: bytes(
        '{"__proto__":{"polluted":1},"a":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
      ),
    });
    expectPrototypeFree(hostile);
    expect(JSON.stringify(hostile)).toMatch(/^\{"__proto__":\{"polluted":1\},"a":/);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("a body", () => {
  test.each<[BodyKind, string | undefined, string, unknown]>([
    ["json", "application/json", '{"a":1}', { fields: { a: 1 } }],
    ["json", "Application/JSON; charset=UTF-8", '{"a":1}', { fields: { a: 1 } }],
    ["json", 'application/vnd.x+json; charset="utf-8"', '{"a":1}', { fields: { a: 1 } }],
    ["json", undefined, "", undefined],
    ["form", "application/x-www-form-urlencoded", "a=1&b=%C3%A4", { fields: { a: "1", b: "ä" } }],
    ["text", "text/plain", "hällo", { body: "hällo" }],
    ["bytes", "image/png", "abc", { body: bytes("abc") }],
    ["bytes", undefined, "abc", { body: bytes("abc") }],
    ["json", json, '{"a":"\\"[[["}', { fields: { a: '"[[[' } }],
    ["json", json, `{"a":"${'\\"['.repeat(70)}"}`, { fields: { a: '"['.repeat(70) } }],
  ])("of kind %s with type %s is parsed", (kind, type, text, expected) => {
    const parsed = parseBody(kind, type, bytes(text));
    expect(parsed === undefined ? undefined : structuredClone(parsed)).toEqual(expected);
  });

  test.each<[string, BodyKind, string | undefined, string | Uint8Array, number]>([
    ["another type", "json", "text/plain", "{}", 415],
    ["no type", "json", undefined, "{}", 415],
    ["another charset", "json", "application/json; charset=latin1", "{}", 415],
    ["JSON for a form", "form", json, "{}", 415],
    ["JSON for text", "text", json, "{}", 415],
    ["broken JSON", "json", json, "{", 400],
    ["invalid UTF-8", "json", json, new Uint8Array([0x22, 0xff, 0x22]), 400],
    ["too deep nesting", "json", json, `${"[".repeat(65)}${"]".repeat(65)}`, 400],
    ["a bomb of brackets", "json", json, "[".repeat(1_000_000), 400],
    ["malformed form encoding", "form", "application/x-www-form-urlencoded", "a=%zz", 400],
  ])("with %s is refused", (_name, kind, type, body, status) => {
    expect(() => parseBody(kind, type, typeof body === "string" ? bytes(body) : body)).toThrow(
      expect.objectContaining({ status }),
    );
  });

  test("has no prototype at any depth, even in arrays", () => {
    const parsed = parseBody(
      "value",
      json,
      bytes('[{"__proto__":{"a":[{"constructor":1}]}},[[{}]]]'),
    );

    expectPrototypeFree(parsed !== undefined && "body" in parsed ? parsed.body : "no body");
    expect(JSON.stringify(parsed)).toBe(
      '{"body":[{"__proto__":{"a":[{"constructor":1}]}},[[{}]]]}',
    );
  });

  test("keeps JSON.parse's objects when a schema reads them, with `__proto__` as an ordinary member", () => {
    const text = '{"a":{"__proto__":{"polluted":1},"b":[{"constructor":1}]}}';
    const parsed = parseBody("json", json, bytes(text), true);

    expect(parsed).toEqual({ fields: JSON.parse(text) });
    expect(
      Object.getPrototypeOf(
        Object.values(parsed !== undefined && "fields" in parsed ? parsed.fields : {})[0],
      ),
    ).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test.each([
    ["levels", `${"[".repeat(65)}${"]".repeat(65)}`, "The body has more than 64 levels"],
    ["values", `[${"0,".repeat(300_000)}0]`, "The body has more than 262144 values"],
    [
      "members of one object",
      `{${Array.from({ length: 10_001 }, (_, index) => `"${index}":0`).join()}}`,
      "The body has an object of more than 10000 members",
    ],
  ])("with too many %s is refused with the limit", (_, text, message) => {
    expect(() => parseBody("json", json, bytes(text))).toThrow(message);
  });

  test("with a repeated JSON name takes the last value, like JSON.parse", () => {
    expect(structuredClone(parseBody("json", json, bytes('{"a":1,"a":2}')))).toEqual({
      fields: { a: 2 },
    });
  });

  test("is not quoted when it is refused", () => {
    expect(() => parseBody("json", json, bytes('{"password":"hunter2"'))).toThrow(
      /^The body is not valid JSON$/,
    );
  });

  test("of 64 levels is accepted", () => {
    expect(() =>
      parseBody("value", json, bytes(`${"[".repeat(64)}${"]".repeat(64)}`)),
    ).not.toThrow();
  });
});

test("refuses a query with more than a thousand parameters or malformed encoding", () => {
  expect(() => parseForm("a&".repeat(1_000), "query")).toThrow(
    expect.objectContaining({ status: 400 }),
  );
  expect(() => parseForm("%=1", "query")).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringContaining("query") }),
  );
  expect(parseForm("a=1&a=2&a=3", "query")["a"]).toEqual(["1", "2", "3"]);
});

describe("validation", () => {
  test("passes the input through without a schema", () => {
    expect(validateInput(undefined, 7)).toBe(7);
  });

  test("returns the schema's output, synchronously if the schema is synchronous", async () => {
    expect(validateInput(z.object({ a: z.string().transform(Number) }), { a: "1" })).toEqual({
      a: 1,
    });
    await expect(
      validateInput(z.object({ a: z.string().refine(async () => true) }), { a: "1" }),
    ).resolves.toEqual({ a: "1" });
  });

  test("names each field by its dotted path, and the whole input `input`", () => {
    const schema = z.object({ files: z.array(z.object({ sizeMb: z.number() })) });

    expect(
      fieldsOf(() => validateInput(schema, { files: [{ sizeMb: 1 }, { sizeMb: "2" }] })),
    ).toEqual(["files.1.sizeMb"]);
    expect(fieldsOf(() => validateInput(schema, 7))).toEqual(["input"]);
  });

  test("supports issues with path objects or without a path, and truncates their messages", () => {
    const issues = [
      { message: "m".repeat(1_000), path: [{ key: "a" }, "b"] },
      { message: "whole" },
    ];
    const schema = {
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues }) },
    } as const;

    expect(fieldsOf(() => validateInput(schema, {}))).toEqual(["a.b", "input"]);
    expect(errorOf(() => validateInput(schema, {})).fields[0]?.error).toHaveLength(500);
  });
});

function expectPrototypeFree(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) expect(Object.getPrototypeOf(value)).toBeNull();
  for (const name of Object.keys(value))
    expectPrototypeFree((value as Record<string, unknown>)[name]);
}

function errorOf(attempt: () => unknown): ValidationError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof ValidationError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

function fieldsOf(attempt: () => unknown): string[] {
  return errorOf(attempt).fields.map(({ field }) => field);
}
