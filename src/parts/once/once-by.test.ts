import { describe, expect, test } from "vitest";
import { isOnce, type OnceOptions, type OnceRule, onceForms, onceRule } from "./once-by.ts";

describe("isOnce", () => {
  test.each<[unknown, boolean]>([
    [false, true],
    [{}, true],
    [{ key: "either" }, true],
    [{ key: "idempotency-key" }, true],
    [{ key: undefined, required: undefined, keepSeconds: undefined }, true],
    [{ required: true }, true],
    [{ required: false }, true],
    [{ key: "idempotency-key", required: true }, true],
    [{ key: "idempotency-key", required: false }, true],
    [{ key: "either", required: false }, true],
    [{ keepSeconds: 300 }, true],
    [{ keepSeconds: 604_800 }, true],
    [{ key: "either", keepSeconds: 86_400 }, true],
    [{ key: "idempotency-key", required: true, keepSeconds: 86_400 }, true],
  ])("accepts %j", (once, isSound) => {
    expect(isOnce(once)).toBe(isSound);
  });

  test.each<[unknown]>([
    [undefined],
    [null],
    [true],
    [7],
    ["either"],
    ["idempotency-key"],
    ["required"],
    [[]],
    [{ key: false }],
    [{ key: null }],
    [{ key: "sometimes" }],
    [{ key: "required" }],
    [{ key: "either", required: true }],
    [{ required: "yes" }],
    [{ required: null }],
    [{ keepSeconds: 299 }],
    [{ keepSeconds: 604_801 }],
    [{ keepSeconds: 300.5 }],
    [{ keepSeconds: Number.NaN }],
    [{ keepSeconds: "86400" }],
    [{ keepSeconds: null }],
    [{ keepDays: 1 }],
    [{ required: true, keepDays: 1 }],
    [{ waitMs: 5 }],
  ])("refuses %j", (once) => {
    expect(isOnce(once)).toBe(false);
  });

  test("accepts further members by name, and leaves their values to the caller", () => {
    expect(isOnce({ waitMs: 5 }, ["waitMs"])).toBe(true);
    expect(isOnce({ required: true, waitMs: "soon" }, ["waitMs"])).toBe(true);
    expect(isOnce({ keepSeconds: 1, waitMs: 5 }, ["waitMs"])).toBe(false);
    expect(isOnce({ waitMs: 5, wait: 5 }, ["waitMs"])).toBe(false);
  });
});

describe("onceRule", () => {
  type Once = OnceOptions | false | undefined;
  const rule = (key: OnceRule["key"], keepSeconds?: number): OnceRule => ({ key, keepSeconds });

  test.each<[Once, Once, OnceRule | false]>([
    [undefined, undefined, rule("either")],
    [{}, undefined, rule("either")],
    [undefined, {}, rule("either")],
    [{}, {}, rule("either")],
  ])("%j of a write and %j of its server are the default", (own, server, expected) => {
    expect(onceRule(own, server)).toEqual(expected);
  });

  test.each<[Once, Once, OnceRule | false]>([
    [false, undefined, false],
    [false, { required: true }, false],
    [undefined, false, false],
    [false, false, false],
    [{}, false, rule("either")],
    [{ required: true }, false, rule("required")],
    [{ keepSeconds: 600 }, false, rule("either", 600)],
  ])("%j of a write wins over %j of its server", (own, server, expected) => {
    expect(onceRule(own, server)).toEqual(expected);
  });

  test.each<[Once, Once, OnceRule]>([
    [undefined, { key: "idempotency-key" }, rule("idempotency-key")],
    [{ key: "either" }, { key: "idempotency-key" }, rule("either")],
    [{ key: "idempotency-key" }, { key: "either" }, rule("idempotency-key")],
    [{ keepSeconds: 600 }, { key: "idempotency-key" }, rule("idempotency-key", 600)],
    [{ required: true }, { key: "either" }, rule("required")],
    [{ key: "idempotency-key", required: true }, undefined, rule("required")],
    [undefined, { required: true }, rule("required")],
    [{ keepSeconds: 600 }, { required: true }, rule("required", 600)],
    [{ key: "either" }, { required: true }, rule("required")],
    [{ required: false }, { required: true }, rule("either")],
    [
      { required: false },
      { required: true, key: "idempotency-key", keepSeconds: 600 },
      rule("idempotency-key", 600),
    ],
    [{ key: "either", required: false }, { required: true }, rule("either")],
    [undefined, { keepSeconds: 600 }, rule("either", 600)],
    [{ keepSeconds: 900 }, { keepSeconds: 600 }, rule("either", 900)],
    [{ required: true }, { keepSeconds: 600 }, rule("required", 600)],
  ])("of %j of a write, each member replaces that of %j of its server", (own, server, expected) => {
    expect(onceRule(own, server)).toEqual(expected);
  });
});

test("the error text names each form and both limits", () => {
  for (const part of ["false", '"either"', '"idempotency-key"', "required", "300 to 604800"])
    expect(onceForms).toContain(part);
});
