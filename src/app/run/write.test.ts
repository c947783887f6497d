import { expect, test } from "vitest";
import { isOnceBy, isWriteOnce, type OnceBy, type RequiredKey } from "../../parts/once/once-by.ts";
import { writeIdOf } from "./write.ts";

const idOf = (
  headers: Record<string, string>,
  { once = "either" as OnceBy | RequiredKey, isSignedIn = true, requestId = "r1" } = {},
) => writeIdOf(headers, requestId, once, isSignedIn);

test("Idempotency-Key takes precedence over X-Request-ID, each only where allowed", () => {
  const both = { "idempotency-key": "k1", "x-request-id": "r1" };
  expect(idOf(both)).toEqual({ by: "idempotency-key", id: "k1" });
  expect(idOf({ "x-request-id": "r1" })).toEqual({ by: "x-request-id", id: "r1" });
  expect(idOf({})).toBeUndefined();
  expect(idOf(both, { once: false })).toBeUndefined();
  expect(idOf({ "x-request-id": "r1" }, { once: "idempotency-key" })).toBeUndefined();
  expect(idOf({ "x-request-id": "r1" }, { isSignedIn: false })).toBeUndefined();
  expect(idOf(both, { isSignedIn: false })).toEqual({ by: "idempotency-key", id: "k1" });
});

test("a write that requires a key accepts no request ID instead", () => {
  const once = { required: true } as const;
  const missing = expect.objectContaining({ status: 400, code: "idempotency_key_required" });

  expect(idOf({ "idempotency-key": "k1", "x-request-id": "r1" }, { once })).toEqual({
    by: "idempotency-key",
    id: "k1",
  });
  expect(() => idOf({ "x-request-id": "r1" }, { once })).toThrow(missing);
  expect(() => idOf({}, { once, isSignedIn: false })).toThrow(missing);
});

test.each([
  [{ required: true }, true],
  [{ required: true, keepSeconds: 300 }, true],
  [{ required: true, keepSeconds: 604_800 }, true],
  [{ required: true, keepSeconds: 299 }, false],
  [{ required: true, keepSeconds: 604_801 }, false],
  [{ required: true, keepSeconds: 300.5 }, false],
  [{ required: true, keepSeconds: "86400" }, false],
  [{ required: true, keepDays: 1 }, false],
  [{ required: false, keepSeconds: 86_400 }, false],
  [{ keepSeconds: 86_400 }, false],
  [{}, false],
  [null, false],
  ["either", true],
  ["required", false],
])("accepts or refuses %j as `once` of a write: %s", (once, isSound) => {
  expect(isWriteOnce(once)).toBe(isSound);
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

test("only three values of `once` choose how a write is claimed", () => {
  expect(["either", "idempotency-key", false, true, "x", undefined].map(isOnceBy)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});
