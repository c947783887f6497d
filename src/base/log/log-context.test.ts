import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { createRecordRules, LogContext } from "./log-context.ts";
import { createRedaction } from "./redaction.ts";

const reserved = new Set(["level", "msg", "time"]);
// A path of the application's own, though it leads nowhere, has every field walked through.
const walking = new LogContext(createRecordRules(createRedaction(["no.such.path"]), reserved));
const plain = new LogContext(createRecordRules(createRedaction(), reserved));

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
