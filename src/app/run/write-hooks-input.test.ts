import { expect, test } from "vitest";
import { changedInput, copied } from "./write-hooks.ts";

/** Of an input whose amounts the schema has multiplied, as a hook changed it. */
const merged = (raw: unknown, accepted: unknown, change: (input: never) => unknown) => {
  const known = copied(accepted);
  return changedInput({ raw, accepted: known }, change(accepted as never));
};
const raw = {
  amount: 1,
  title: "a",
  at: "2026-01-01",
  lines: [{ price: 1, note: "x" }, { price: 2 }],
  tags: ["b"],
};
const accepted = () => ({
  ...{
    amount: 100,
    title: "a",
    at: new Date("2026-01-01"),
    lines: [{ price: 100, note: "x" }, { price: 200 }],
    tags: ["b"],
  },
  added: "by the schema",
});
type Input = ReturnType<typeof accepted>;

test.each<[string, (input: Input) => unknown, unknown]>([
  ["nothing", (input) => input, raw],
  ["nothing, in a copy", (input) => structuredClone(input), raw],
  ["a member", (input) => ({ ...input, title: "b" }), { ...raw, title: "b" }],
  [
    "one that it changed in place",
    (input) => Object.assign(input, { title: "b" }),
    { ...raw, title: "b" },
  ],
  ["one that has a transform", (input) => ({ ...input, amount: 7 }), { ...raw, amount: 7 }],
  ["a new one", (input) => ({ ...input, more: 1 }), { ...raw, more: 1 }],
  ["one that the schema added", (input) => ({ ...input, added: "c" }), { ...raw, added: "c" }],
  [
    "one that it left out",
    ({ title: _, ...input }) => input,
    { amount: 1, at: raw.at, lines: raw.lines, tags: raw.tags },
  ],
  [
    "a member of an item",
    (input) => ({ ...input, lines: input.lines.map((line) => ({ ...line, note: "y" })) }),
    {
      ...raw,
      lines: [
        { price: 1, note: "y" },
        { price: 2, note: "y" },
      ],
    },
  ],
  [
    "a list's order and length",
    (input) => ({ ...input, lines: [...input.lines.toReversed(), { price: 3 }] }),
    { ...raw, lines: [{ price: 2 }, { price: 1, note: "x" }, { price: 3 }] },
  ],
  ["a list into a text", (input) => ({ ...input, tags: "b" }), { ...raw, tags: "b" }],
])(
  "the schema reads the client's input, except for changes of the hook: %s",
  (_, change, expected) => {
    expect(merged(raw, accepted(), change)).toEqual(expected);
  },
);

test("an input that the schema converted as a whole is used as the hook returned it", () => {
  expect(merged("1,2", [1, 2], () => [1, 2, 3])).toEqual([1, 2, 3]);
  expect(merged([1], [1, 2], (input: number[]) => [...input, 3])).toEqual([1, 2, 3]);
  expect(
    merged({ first: "a" }, { name: "a" }, (input: object) => ({ ...input, first: "b" })),
  ).toEqual({ first: "b" });
});

test("unchanged class instances and deeply nested values keep the client's input", () => {
  class Amount {
    readonly cents = 1;
  }
  expect(
    merged({ a: "1" }, { a: new Amount(), b: 1 }, (input: object) => ({ ...input, b: 2 })),
  ).toEqual({ a: "1", b: 2 });
  let [deepRaw, deep]: unknown[] = ["1", 100];
  for (let level = 0; level < 100; level++) [deepRaw, deep] = [{ next: deepRaw }, { next: deep }];
  expect(
    merged({ a: deepRaw, b: 1 }, { a: deep, b: 1 }, (input: object) => ({ ...input, b: 2 })),
  ).toEqual({ a: deepRaw, b: 2 });
});
