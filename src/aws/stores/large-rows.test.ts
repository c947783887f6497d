import fc from "fast-check";
import { expect, test } from "vitest";
import { partKeys, partsOf } from "./large-rows.ts";

const maxBytes = 393_216;

test("a text of up to 384 KiB fits one row; one byte more makes two parts of about equal size", () => {
  for (const text of ["", "x".repeat(131_072), "x".repeat(maxBytes), "€".repeat(maxBytes / 3)])
    expect(partsOf(text)).toEqual([]);
  const parts = partsOf("x".repeat(maxBytes + 1));
  expect(parts.map((part) => part.length)).toEqual([196_609, 196_608]);
});

test("parts join to the text, fit a row and divide no character, for any text up to 1 MiB", () => {
  const character = fc.constantFrom("x", "ß", "€", "\u{1F600}");
  const text = fc
    .tuple(fc.array(character, { minLength: 1, maxLength: 9 }), fc.nat(900_000))
    .map(([few, bytes]) => {
      const unit = few.join("");
      return unit.repeat(Math.ceil((bytes + 150_000) / Buffer.byteLength(unit)));
    });
  fc.assert(
    fc.property(text, (given) => {
      const parts = partsOf(given);
      const bytes = Buffer.byteLength(given);
      expect(parts.length > 0).toBe(bytes > maxBytes);
      if (parts.length === 0) return;
      expect(parts.join("") === given).toBe(true);
      const sizes = parts.map((part) => Buffer.byteLength(part));
      expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBytes);
      expect(Math.min(...sizes)).toBeGreaterThan(190_000);
    }),
    { numRuns: 60 },
  );
});

test("a row whose number of parts was changed by hand has a bounded number of keys", () => {
  const place = { shard: "due#1", sort: "1#j1" };
  expect(partKeys(place, 3).map(({ sk }) => sk)).toEqual(["0", "1", "2"]);
  for (const count of [1e125, 2 ** 40]) expect(partKeys(place, count)).toHaveLength(50);
  for (const count of [-1, Number.NaN]) expect(partKeys(place, count)).toEqual([]);
});
