import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
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

test.each<[string, unknown, unknown, unknown]>([
  ["a text into a list", "12", [1, 2], [2, 1]],
  ["a list into one of another length", ["1"], [1, 2], [1, 2, 3]],
  ["a text into an object", "a=1", { a: 1, b: 2 }, { a: 1, b: 3 }],
  ["nothing into an object", null, { a: 1, b: 2 }, { a: 1, b: 3 }],
  ["a list into an object", ["a"], { a: 1, b: 2 }, { a: 1, b: 3 }],
  ["an object into a list", { a: "1" }, [1], [1, 2]],
  ["an object into nothing", { a: "1" }, null, { a: 1 }],
])("a schema that makes %s gets what its hook returned", (_, before, made, changed) => {
  expect(merged(before, made, () => changed)).toEqual(changed);
});

test("members that the schema added and the hook left alone are not in its input again", () => {
  const change = (input: object) => ({ ...input, title: "b" });
  const input = merged(raw, accepted(), change) as object; // safe: it is one above
  expect(Object.keys(input)).not.toContain("added");
});

describe("the copy that a hook's changes are compared with", () => {
  test("is unchanged by changes of members and items at any depth", () => {
    const input = { list: [{ n: 1 }], member: { n: 1 }, none: null, missing: undefined };
    const copy = copied(input);
    const before = structuredClone(input);
    expect(copy).toEqual(input);
    for (const item of input.list) item.n = 2;
    input.list.push({ n: 3 });
    input.member.n = 2;
    expect(copy).toEqual(before);
  });

  test.each([
    ["a body without a schema", () => Object.assign(Object.create(null), { a: [1] })],
    ["one with a schema", () => ({ a: [{ b: undefined }] })],
  ])("equals %s until a hook changes it", (_, create) => {
    const input = create();
    expect(isDeepStrictEqual(copied(input), input)).toBe(true);
  });

  test.each([null, undefined, 1, "text", new Date(0)])("of %s is itself", (value) => {
    expect(copied(value)).toBe(value);
  });

  test("of an input that contains itself has an end", () => {
    const inside: Record<string, unknown> = {};
    inside["self"] = inside;
    const list: unknown[] = [];
    list.push(list);
    for (const input of [inside, list]) expect(() => copied(input)).not.toThrow();
  });
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

test("items that a hook moved keep the client's values, if their content is a date, an instance or deep", () => {
  let [deepRaw, deep]: unknown[] = ["1", 100];
  for (let level = 0; level < 100; level++) [deepRaw, deep] = [[deepRaw], [deep]];
  const [first, second] = [new URL("https://a.example"), new URL("https://b.example")];
  const rawItems = ["x", "2026-01-01", { url: "a" }, { url: "b" }, "b", deepRaw, { n: 1 }];
  const items = [
    0,
    new Date("2026-01-01"),
    { url: first },
    { url: second },
    second,
    deep,
    { n: 2 },
  ];
  const moved = (list: unknown[]) => [{ n: 2 }, new Date("2026-01-01"), ...list.toReversed()];
  expect(merged(rawItems, items, moved)).toEqual([
    { n: 1 },
    "2026-01-01",
    ...rawItems.toReversed(),
  ]);
});

test("equal items take the client's value of the first", () => {
  expect(merged(["01", "1"], [1, 1], (list: number[]) => [...list, 2])).toEqual(["01", "01", 2]);
});

test("a list is merged without comparing each item with all others", () => {
  let reads = 0;
  const count = 2_000;
  const texts = Array.from({ length: count }, (_, index) => ({ text: ` ${index}` }));
  const trimmed = texts.map(({ text }) => ({
    get text() {
      reads += 1;
      return text.trim();
    },
  }));
  const expected = texts.map(({ text }) => ({ text: text.trim() }));
  expect(merged(texts, structuredClone(texts), () => trimmed)).toEqual(expected);
  expect(reads).toBeLessThan(20 * count);
});
