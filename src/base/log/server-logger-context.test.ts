import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { createRecordRules, recordText } from "./log-record.ts";
import { createRedaction } from "./redaction.ts";
import { contextLimits, LogContext } from "./server-logger.ts";

const reserved = new Set(["level", "msg", "time"]);
// A path of the application's own, though it leads nowhere, has every field walked through.
const rules = createRecordRules(createRedaction(["no.such.path"]), reserved);
const walking = new LogContext(rules);
const plain = new LogContext(createRecordRules(createRedaction(), reserved));

const time = "2026-01-02T03:04:05.678Z";
const line = (msg: string, context: LogContext) =>
  recordText("info", context, msg, undefined, `"time":"${time}"`, rules);
const record = (msg: string, context: LogContext): unknown => JSON.parse(line(msg, context));

const names = fc.oneof(
  fc.constantFrom("requestId", "handler", "level", "msg", "password", "Authorization", "__proto__"),
  fc.string(),
);
const values = fc.oneof(
  fc.string(),
  fc.string({ unit: codePoint }),
  fc.string({ minLength: 250, maxLength: 300 }),
  fc.constantFrom(undefined, null, 7, { a: 1 }),
);

test("writes a plain context like any other", () => {
  fc.assert(
    fc.property(fc.dictionary(names, values, { maxKeys: 20 }), (context) => {
      const [short, long] = [plain.child(context), walking.child(context)];

      expect(short.text).toBe(long.text);
      for (const name of [...Object.keys(context), "other", "context_level"])
        expect(short.has(name)).toBe(long.has(name));
      expect(short.child({ handler: "x" }).text).toBe(long.child({ handler: "x" }).text);
    }),
  );
});

test.each([
  ["a secret", { password: "hunter2", id: "1" }],
  ["a reserved name", { level: "mine", id: "1" }],
  ["a long text", { id: "a".repeat(2_000) }],
  ["a long name", { [`n${"\u0001".repeat(300)}`]: "1" }],
  ["a text to escape", { id: 'a"\n\u2028' }],
  [
    "many fields",
    Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`field${index}`, "v".repeat(250)]),
    ),
  ],
  ["what is undefined", { id: undefined, other: "1" }],
])("treats %s in a context alike", (_what, context) => {
  expect(plain.child(context).text).toBe(walking.child(context).text);
});

test("does not write a secret", () => {
  expect(plain.child({ token: "abc", id: "1" }).text).toBe('"token":"[redacted]","id":"1",');
});

test("knows the names of its fields before and after writing them", () => {
  const context = plain.child({ id: "1", gone: undefined });
  const known = () => ["id", "gone", "other"].map((name) => context.has(name));

  expect(known()).toEqual([true, false, false]);
  expect(context.text).toBe('"id":"1",');
  expect(known()).toEqual([true, false, false]);
});

test("writes fields alike after more names than it remembers", () => {
  const rules = createRecordRules(createRedaction(), reserved);
  const root = new LogContext(rules);
  for (let index = 0; index < 600; index++) root.child({ [`name${index}`]: "1" }).text;

  for (const name of ["name0", "name599", "another"])
    for (const value of ["1", "2", "2"])
      expect(root.child({ [name]: value }).text).toBe(`"${name}":"${value}",`);
});

test("leaves out the fields beyond its limit, and says so", () => {
  const fields = Array.from({ length: 40 }, (_, index) => [`field${index}`, "v".repeat(900)]);
  const context = plain.child(Object.fromEntries(fields));

  expect(context.has("field39")).toBe(false);
  expect(context.text).toMatch(/"\[cut\]":true,$/);
});

describe("the context", () => {
  it("is the parent's with the child's fields over it, in the parent's order", () => {
    const parent = walking.child({ a: 1, b: 2 });
    const child = parent.child({ c: 3, a: 9 });
    expect(record("m", child)).toEqual({
      level: "info",
      a: 9,
      b: 2,
      c: 3,
      msg: "m",
      time,
    });
    expect(record("m", parent)).toEqual({ level: "info", a: 1, b: 2, msg: "m", time });
    expect(child.text).toBe('"a":9,"b":2,"c":3,');
  });

  it("is the same whether or not the parent wrote a line before the child", () => {
    for (const first of [true, false]) {
      const parent = walking.child({ a: 1 }).child({ b: 2 });
      if (first) line("m", parent);
      expect(parent.child({ c: 3 }).child(undefined).text).toBe('"a":1,"b":2,"c":3,');
    }
  });

  it("cannot overwrite level, msg or time", () => {
    const context = walking.child({ level: "error", msg: "forged", time: 0, a: undefined });
    expect(record("real", context)).toEqual({
      level: "info",
      context_level: "error",
      context_msg: "forged",
      context_time: 0,
      msg: "real",
      time,
    });
  });

  it("accepts any value from plain JavaScript", () => {
    const raise = (): never => {
      throw new Error("no");
    };
    const hostile = new Proxy(
      {},
      { get: raise, ownKeys: raise, getPrototypeOf: raise, has: raise },
    );
    expect(walking.child("text").text).toBe('"context":"text",');
    expect(walking.child(hostile).text).toBe('"context":"[unreadable]",');
    expect(JSON.parse(`{${walking.child(new Error("boom")).text}"x":1}`)).toMatchObject({
      error: { message: "boom" },
    });
    const self: Record<string, unknown> = {};
    self["self"] = self;
    expect(walking.child(self).text).toBe('"self":"[circular]",');
  });

  it("bounds each field, so that a long one does not displace others", () => {
    const context = walking.child({ long: "x".repeat(1_000_000) }).child({ requestId: "r1" });
    expect(context.text).toMatch(/^"long":"x+\.\.\.\[\d+ characters cut\]","requestId":"r1",$/);
    expect(context.text.length).toBeLessThan(contextLimits.fieldCharacters + 100);
  });

  it("is bounded over all parents, and shows that fields are missing", () => {
    let context = walking;
    for (let index = 0; index < 100_000; index += 1)
      context = context.child({ [`field${index}`]: "x".repeat(100) });
    expect(context.text.length).toBeLessThan(contextLimits.characters + 200);
    expect(context.text).toMatch(/^"field0":"x+",.*"\[cut\]":true,$/);
    expect(context.child({ more: 1 }).text).toBe(context.text);
  });
});
