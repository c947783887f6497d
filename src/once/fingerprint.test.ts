import fc from "fast-check";
import { expect, test } from "vitest";
import { fingerprintOf } from "./fingerprint.ts";

const of = (input: unknown) => fingerprintOf("files.file.create", input);

test("the order of members does not count, that of a list does", () => {
  expect(of({ a: 1, b: { c: 2, d: 3 } })).toBe(of({ b: { d: 3, c: 2 }, a: 1 }));
  expect(of([1, 2])).not.toBe(of([2, 1]));
  expect(of(new Set(["a", "b"]))).toBe(of(new Set(["b", "a"])));
  expect(
    of(
      new Map([
        ["a", 1],
        ["b", 2],
      ]),
    ),
  ).toBe(
    of(
      new Map([
        ["b", 2],
        ["a", 1],
      ]),
    ),
  );
  expect(of({ a: 1, b: undefined })).toBe(of({ a: 1 }));
  expect(of(-0)).toBe(of(0));
});

test("values of another kind, or of another handler, have another fingerprint", () => {
  const values = [
    null,
    undefined,
    true,
    false,
    0,
    1,
    "1",
    "",
    "null",
    1n,
    [],
    {},
    [1],
    { 0: 1 },
    new Date(1),
    new Uint8Array([1]),
    new Map([[1, 1]]),
    new Set([1]),
    { a: 1 },
    { a: "1" },
    [[1]],
    Number.NaN,
  ];
  const all = values.map(of);
  expect(new Set(all).size).toBe(all.length);
  expect(fingerprintOf("a", 1)).not.toBe(fingerprintOf("b", 1));
  expect(all.every((fingerprint) => /^v1:[\w-]{43}$/.test(fingerprint))).toBe(true);
});

test("equal JSON has equal fingerprints, other JSON others", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      expect(of(structuredClone(one))).toBe(of(one));
      fc.pre(JSON.stringify(one) !== JSON.stringify(other));
      const isSame = (() => {
        try {
          expect(one).toEqual(other);
          return true;
        } catch {
          return false;
        }
      })();
      fc.pre(!isSame);
      expect(of(one)).not.toBe(of(other));
    }),
  );
});

test("a circle is refused rather than followed for ever", () => {
  const circle: { itself?: unknown } = {};
  circle.itself = circle;
  expect(() => of(circle)).toThrow("nested too deeply");
});
