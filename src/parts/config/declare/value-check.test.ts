import { expect, test } from "vitest";
import type { ConfigType } from "./key.ts";
import { clamp, named, outOfBounds, typeMismatch } from "./value-check.ts";

test.each<[ConfigType, unknown, string]>([
  ["number", 5, "is not a finite number"],
  ["boolean", false, "is not a boolean"],
  ["text", "", "is not a string"],
  ["select", "a", 'is not one of the options ["a", "b"]'],
])(
  "a %s key accepts its own values, such as %j, and says that any other %s",
  (type, own, mismatch) => {
    const of = (value: unknown) => typeMismatch({ type, options: ["a", "b"] }, value);
    expect(of(own)).toBeUndefined();
    for (const other of [
      undefined,
      null,
      Number.NaN,
      1n,
      {},
      ["a"],
      () => "a",
      new Boolean(false),
      new String("a"),
    ]) {
      expect(of(other)).toBe(mismatch);
    }
    for (const other of [5, false, "c"])
      if (typeof other !== typeof own) expect(of(other)).toBe(mismatch);
  },
);

test("a select key without options accepts no value", () => {
  expect(typeMismatch({ type: "select" }, "a")).toBe("is not one of the options []");
});

test("bounds are inclusive, and a value outside them names the bound it violates", () => {
  const bounds = { min: 1, max: 9 };
  expect([1, 5, 9].map((value) => outOfBounds(bounds, value))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(outOfBounds(bounds, 0.5)).toBe("is below bounds.min 1");
  expect(outOfBounds(bounds, 9.5)).toBe("is above bounds.max 9");
  expect([0.5, 5, 9.5].map((value) => clamp(value, bounds))).toEqual([1, 5, 9]);
});

test("only numbers of keys with bounds can be out of bounds", () => {
  expect(
    ["0", null, [0], false, 0n].map((value) => outOfBounds({ min: 1, max: 9 }, value)),
  ).toEqual(Array(5).fill(undefined));
  expect(outOfBounds(undefined, 0)).toBeUndefined();
});

test("messages never show the value of an encrypted key", () => {
  expect(named({ encrypted: false }, "hunter2")).toBe('"hunter2"');
  expect(named({ encrypted: true }, "hunter2")).toBe("(not shown)");
});
