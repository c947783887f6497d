import fc from "fast-check";
import { expect, test } from "vitest";
import { exceededBound, type JsonBounds } from "./json-bounds.ts";

const bounds: JsonBounds = { depth: 64, values: 20_000, members: 10_000 };
const exceeded = (text: string) => exceededBound(text, bounds);
const members = (count: number) =>
  `{${Array.from({ length: count }, (_, index) => `"${index}":0`).join()}}`;
const list = (count: number, element: string) => `[${Array(count).fill(element).join()}]`;
/** More brackets than levels, one after another: such a text is looked through. */
const many = `[${"[],".repeat(70)}`;
const nested = (levels: number, inside: string) => "[".repeat(levels) + inside + "]".repeat(levels);

test.each<[string, string, keyof JsonBounds | undefined]>([
  ["64 levels", nested(64, ""), undefined],
  ["65 levels", nested(65, ""), "depth"],
  ["65 levels of objects", '{"a":'.repeat(65), "depth"],
  ["10,000 members", members(10_000), undefined],
  ["10,001 members", members(10_001), "members"],
  ["10,001 members further in", nested(30, members(10_001)), "members"],
  ["20,000 values in a list", list(20_000, "0"), undefined],
  ["one more", list(20_001, "0"), "values"],
  ["many empty lists", list(20_001, "[]"), "values"],
  ["many small objects", list(10_100, '{"a":0}'), "values"],
  ["lists one after another, not in one another", list(5_000, "[0,[]]"), undefined],
  ["commas in a text", `{"a":"${",".repeat(30_000)}"}`, undefined],
  ["brackets in a text", `["${"[{".repeat(30_000)}"]`, undefined],
  ["brackets behind escapes in a text", `["${'\\"[{'.repeat(30_000)}"]`, undefined],
  [
    "an escape before the end of a text",
    `["${"x".repeat(100)}\\\\"${",0".repeat(30_000)}]`,
    "values",
  ],
  ["a text that does not end", `${many}"${",".repeat(30_000)}`, undefined],
  ["an escape at the very end", `${many}"\\`, undefined],
  [
    "many texts before an escape",
    `${many}${'"a",'.repeat(3_000)}"${"x".repeat(30)}\\n"]`,
    undefined,
  ],
  [
    "escapes far from one another",
    `${many}${'"a",'.repeat(3_000)}"${`${"x".repeat(300)}\\n`.repeat(9)}"]`,
    undefined,
  ],
  ["closing brackets alone", `${"]".repeat(70)}${"{".repeat(70)}`, "depth"],
])("finds whether a bound is exceeded by %s", (_, text, expected) => {
  expect(exceeded(text)).toBe(expected);
});

test("counts depth, values and members as a parser would, for any JSON", () => {
  const small: JsonBounds = { depth: 3, values: 12, members: 4 };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.boolean(), (value, isSpaced) => {
      const text = JSON.stringify(value, undefined, isSpaced ? 2 : undefined);
      const { depth, values, members } = measured(value);
      const isOver = depth > small.depth || values > small.values || members > small.members;
      expect(exceededBound(text, small) !== undefined).toBe(isOver);
    }),
    { numRuns: 2_000 },
  );
});

/** As the bounds count them: values are commas and brackets. */
function measured(value: unknown): { depth: number; values: number; members: number } {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 0, members: 0 };
  const parts = Object.values(value).map(measured);
  return {
    depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)),
    values: Math.max(1, parts.length) + parts.reduce((sum, { values }) => sum + values, 0),
    members: Math.max(
      Array.isArray(value) ? 0 : parts.length,
      ...parts.map(({ members }) => members),
    ),
  };
}
