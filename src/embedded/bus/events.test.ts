import { expect, test } from "vitest";
import { readEventPattern } from "./events.ts";

const event = {
  source: "shop",
  detail: {
    n: 1,
    text: "abc",
    nothing: null,
    list: ["a", "b"],
    rows: [{ id: 1 }, { id: 2 }],
    empty: [],
    below: { deep: true },
  },
};
const fits = (pattern: unknown) => readEventPattern(JSON.stringify(pattern))(event);

test.each<[boolean, unknown]>([
  [true, { source: ["shop"] }],
  [false, { source: ["Shop"] }],
  [false, { detail: { n: ["1"] } }],
  [true, { detail: { n: [2, 1], below: { deep: [true] } } }],
  [false, { detail: { n: [1], below: { deep: [false] } } }],
  [true, { detail: { nothing: [null] } }],
  [false, { detail: { missing: [null] } }],
  [true, { detail: { list: ["b"] } }],
  [true, { detail: { rows: { id: [2] } } }],
  [false, { detail: { rows: { id: [3] } } }],
  [true, { detail: { empty: { id: [{ exists: false }] } } }],
  [true, { detail: { missing: { deep: [{ exists: false }] } } }],
  [false, { detail: { missing: { deep: [{ exists: true }] } } }],
  [true, { detail: { text: [{ prefix: "ab" }] } }],
  [false, { detail: { n: [{ prefix: "1" }] } }],
  [true, { detail: { text: [{ prefix: "x" }, "abc"] } }],
  [true, { detail: { text: [{ "anything-but": "x" }] } }],
  [false, { detail: { text: [{ "anything-but": ["x", "abc"] }] } }],
  [false, { detail: { missing: [{ "anything-but": "x" }] } }],
  [false, { detail: { text: [{ "anything-but": { prefix: "ab" } }] } }],
  [true, { detail: { n: [{ "anything-but": { prefix: "ab" } }] } }],
  [false, { detail: { constructor: [{ exists: true }] } }],
  [false, { source: { below: ["shop"] } }],
])("returns %s for the pattern %j", (expected, pattern) => {
  expect(fits(pattern)).toBe(expected);
});

test.each<[string, string]>([
  ["{", "not JSON"],
  ["[]", "not an object"],
  ["{}", "Empty objects are not allowed"],
  ['{"detail":{}}', "Empty objects are not allowed at detail"],
  ['{"source":"a"}', '"source" must be an object or an array'],
  ['{"detail":{"n":[]}}', 'Empty arrays are not allowed at "detail.n"'],
  ['{"n":[{"numeric":[">",1]}]}', 'does not support {"numeric":[">",1]} at "n"'],
  ['{"n":[{"prefix":1}]}', "does not support"],
  ['{"n":[{"exists":"yes"}]}', "does not support"],
  ['{"n":[{"exists":true,"prefix":"a"}]}', "does not support"],
  ['{"n":[{}]}', "does not support"],
  ['{"n":[["a"]]}', "does not support"],
  ['{"n":[{"anything-but":[]}]}', "anything-but has no values"],
  ['{"n":[{"anything-but":{"suffix":"a"}}]}', "anything-but has no values"],
])("refuses the pattern %s: %s", (text, reason) => {
  expect(() => readEventPattern(text)).toThrow(reason);
});
