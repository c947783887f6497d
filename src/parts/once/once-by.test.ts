import { expect, test } from "vitest";
import { isOnceBy, isWriteOnce, onceForms } from "./once-by.ts";

test.each(["either", "idempotency-key", false])("%j names a header, or none", (by) => {
  expect([isOnceBy(by), isWriteOnce(by)]).toEqual([true, true]);
});

test.each([
  [{ required: true }],
  [{ required: true, keepSeconds: 300 }],
  [{ required: true, keepSeconds: 604_800 }],
])("%j requires a key", (once) => {
  expect([isOnceBy(once), isWriteOnce(once)]).toEqual([false, true]);
});

test.each([
  [undefined],
  [null],
  [true],
  [""],
  ["x-request-id"],
  [{}],
  [{ required: false }],
  [{ keepSeconds: 300 }],
  [{ required: true, keepSeconds: 299 }],
  [{ required: true, keepSeconds: 604_801 }],
  [{ required: true, keepSeconds: 300.5 }],
  [{ required: true, keepSeconds: "400" }],
  [{ required: true, key: "either" }],
  [() => true],
])("%j is no form of `once`", (once) => {
  expect([isOnceBy(once), isWriteOnce(once)]).toEqual([false, false]);
});

test("the forms for error messages have the limits of keepSeconds", () => {
  expect(onceForms).toBe(
    '"either", "idempotency-key", false or { required: true, keepSeconds: 300 to 604800 }',
  );
});
