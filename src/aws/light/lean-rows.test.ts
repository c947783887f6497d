import { crc32 as ofNode } from "node:zlib";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { crc32, readItem } from "./lean-rows.ts";

/** What a value of the SDK is in DynamoDB's JSON: bytes are text there. */
function sent(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(sent);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, sent(member)]));
}

// The SDK stumbles over a member `constructor`, and makes another prototype of `__proto__`: see below.
const name = fc.string({ minLength: 1, maxLength: 10 }).filter((text) => !(text in {}));
const scalar = fc.oneof(
  fc.string(),
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -9e15, max: 9e15 }),
  fc.bigInt({ min: -(10n ** 37n), max: 10n ** 37n }),
  fc.uint8Array(),
  fc.uniqueArray(fc.string(), { minLength: 1 }).map((texts) => new Set(texts)),
  fc.uniqueArray(fc.integer(), { minLength: 1 }).map((numbers) => new Set(numbers)),
  fc
    .uniqueArray(fc.uint8Array({ minLength: 1 }), { minLength: 1, maxLength: 3 })
    .map((bytes) => new Set(bytes)),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test("reads any item as the SDK reads it", () => {
  fc.assert(
    fc.property(fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true }), (item) => {
      const marshalled = marshall(item);
      expect(readItem(sent(marshalled) as never)).toEqual(unmarshall(marshalled));
    }),
  );
});

test.each([
  "0",
  "-0",
  "1e2",
  "1.5E-7",
  "9007199254740991",
  "9007199254740993",
  "-9007199254740993",
  "1".repeat(38),
  "1e400",
])("reads the number %s as the SDK reads it", (text) => {
  expect(readItem({ number: { N: text } })).toEqual(unmarshall({ number: { N: text } }));
});

test("rejects an invalid value", () => {
  expect(() => readItem({ odd: { X: 1 } })).toThrow("no attribute value: X");
  expect(() => readItem({ odd: {} })).toThrow("no attribute value");
  expect(() => readItem({ odd: { N: "1e30000000.5x" } })).not.toThrow();
  expect(() => readItem({ odd: { N: "9007199254740993.5" } })).toThrow(SyntaxError);
});

test("reads a member named __proto__ as a member, without changing any prototype", () => {
  const read = readItem(JSON.parse('{"__proto__":{"M":{"isAdmin":{"BOOL":true}}}}'));
  expect(read).not.toHaveProperty("isAdmin");
  expect(Object.keys(read)).toEqual(["__proto__"]);
});

test("computes the same checksum as Node for any bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => crc32(bytes) === ofNode(bytes)),
  );
  expect(crc32(Buffer.from("123456789"))).toBe(0xcbf43926);
});
