import { expect, test } from "vitest";
import type { OnceRule } from "../../parts/once/once-by.ts";
import { writeIdOf } from "./write.ts";

const idOf = (
  headers: Record<string, string>,
  { key = "either" as OnceRule["key"], isSignedIn = true, requestId = "r1" } = {},
) => writeIdOf(headers, requestId, { key }, isSignedIn);

test("Idempotency-Key takes precedence over X-Request-ID, each only where allowed", () => {
  const both = { "idempotency-key": "k1", "x-request-id": "r1" };
  expect(idOf(both)).toEqual({ by: "idempotency-key", id: "k1" });
  expect(idOf({ "x-request-id": "r1" })).toEqual({ by: "x-request-id", id: "r1" });
  expect(idOf({})).toBeUndefined();
  expect(idOf(both, { key: "idempotency-key" })).toEqual({ by: "idempotency-key", id: "k1" });
  expect(idOf({ "x-request-id": "r1" }, { key: "idempotency-key" })).toBeUndefined();
  expect(idOf({ "x-request-id": "r1" }, { isSignedIn: false })).toBeUndefined();
  expect(idOf(both, { isSignedIn: false })).toEqual({ by: "idempotency-key", id: "k1" });
});

test("a write that requires a key accepts no request ID instead", () => {
  const key = "required";
  const missing = expect.objectContaining({ status: 400, code: "idempotency_key_required" });

  expect(idOf({ "idempotency-key": "k1", "x-request-id": "r1" }, { key })).toEqual({
    by: "idempotency-key",
    id: "k1",
  });
  expect(() => idOf({ "x-request-id": "r1" }, { key })).toThrow(missing);
  expect(() => idOf({}, { key, isSignedIn: false })).toThrow(missing);
});

test("a replaced request ID is used by its hash", () => {
  const replaced = idOf({ "x-request-id": "has blanks" }, { requestId: "generated" });
  expect(replaced).toEqual({ by: "x-request-id", id: expect.stringMatching(/^sha256:[\w-]{43}$/) });
  expect(idOf({ "x-request-id": "has blanks" }, { requestId: "another" })).toEqual(replaced);
  expect(idOf({ "x-request-id": "has  blanks" }, { requestId: "another" })).not.toEqual(replaced);
});

test.each([
  ["8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"],
  ['"quoted, with a comma"', "quoted, with a comma"],
  [String.raw`"a \"b\" \\c"`, String.raw`a "b" \c`],
  [" k1 ", "k1"],
  ['"k";x=1', "k"],
  ['"a b"; x; y=?0;z="; \\" ,"', "a b"],
  ["x".repeat(255), "x".repeat(255)],
])("the key %j is read as %j", (header, id) => {
  expect(idOf({ "idempotency-key": header })).toEqual({ by: "idempotency-key", id });
});

test.each([
  "",
  " ",
  '""',
  "a b",
  "a, b",
  "a;b",
  '"open',
  'a"b',
  String.raw`"\x"`,
  "é",
  "x".repeat(256),
  `"${"x".repeat(256)}"`,
  "a\u0000",
])("the key %j is refused", (header) => {
  expect(() => idOf({ "idempotency-key": header })).toThrow(
    expect.objectContaining({ status: 400, code: "malformed_request" }),
  );
});
