// Valid inputs with a few mistakes. A parser would refuse random strings in its first line.
import fc, { type Arbitrary } from "fast-check";
import { codePoint } from "../support/code-point.ts";

/** Limits of keelson, AWS and Node, in characters or bytes, and their neighbours. */
const lengths = [
  ...[16, 22, 32, 43, 64, 65, 100, 101, 127, 128, 129, 200, 255, 256, 257, 512, 513, 1_000, 1_001],
  ...[1_024, 2_048, 4_095, 4_096, 4_097, 8_192, 8_193, 16_384, 20_001, 65_536, 65_537],
];

const [longestText, mostPlaces] = [200_000, 300];

export const oddText = fc.oneof(
  fc.constantFrom(
    ...["", " ", "\t", "\r\n", "\n", "\0", "\u007f", "\u0085", "\u00a0", "\u00ad", "\u200b"],
    ...["\u2028", "\ufeff", "\ufffe", "\uffff", "\ud800", "\udfff", "\u202e", "\u001b[31m"],
    ...[
      "İ",
      "ß",
      "ﬁ",
      "e\u0301",
      "𝟘",
      "٣",
      "😀",
      "\u{e0001}",
      "=",
      ";",
      ",",
      "&",
      "%",
      "%zz",
      "%00",
    ],
    ...["%c0%af", "%ff", "+", "-", "--", "..", ".", "/", "//", "\\", '"', '""', "'", "`", "$", "*"],
    ...["__proto__", "constructor", "prototype", "toString", "toJSON", "hasOwnProperty", "then"],
    ...["null", "undefined", "true", "NaN", "Infinity", "-0", "1e999", "0x10", "9007199254740993"],
    ...[
      "{",
      "}",
      "[",
      "]",
      "{}",
      "[]",
      ":",
      "<",
      ">",
      "#",
      "|",
      "\r\nX-Injected: 1\r\n",
      "00",
      "01",
    ],
  ),
  fc
    .constantFrom(...lengths)
    .chain((length) =>
      fc.constantFrom("a", "0", " ", "é", "\0", "%").map((character) => character.repeat(length)),
    ),
);

export const oddNumber = fc.constantFrom(
  ...[
    0,
    -1,
    1,
    0.5,
    -0.5,
    1e21,
    1e-7,
    1e308,
    -1e308,
    5e-324,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    -(2 ** 53),
  ],
  ...[8.64e15, 8.64e15 + 1, 253_402_300_800, 1_000_001],
);

/** `__proto__` and similar names are own members, as in the results of `JSON.parse`. */
export const oddValue: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false),
  oddNumber,
  oddText,
  fc
    .constantFrom(
      "[]",
      "{}",
      "[null]",
      "[[]]",
      '{"":0}',
      '{"__proto__":{"polluted":1}}',
      '{"length":3}',
    )
    .map((text): unknown => JSON.parse(text)),
  fc
    .constantFrom(10, 63, 64, 65, 200, 2_000)
    .map((depth) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`)),
  fc.jsonValue({ maxDepth: 2 }),
);

interface Edit {
  readonly kind: "flip" | "cut" | "double" | "insert" | "end" | "move";
  /** In thousandths of the string's length. */
  readonly at: number;
  readonly length: number;
  readonly odd: string;
}

const edits: Arbitrary<readonly Edit[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("flip", "cut", "double", "insert", "end", "move"),
    at: fc.nat(1_000),
    length: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 8 }) },
      fc.constantFrom(...lengths),
    ),
    odd: oddText,
  }),
  { minLength: 1, maxLength: 4 },
);

function edited(text: string, { kind, at, length, odd }: Edit): string {
  const from = Math.floor((text.length * at) / 1_000);
  const [before, part, after] = [
    text.slice(0, from),
    text.slice(from, from + length),
    text.slice(from + length),
  ];
  switch (kind) {
    case "flip": {
      const flipped = String.fromCharCode((part.charCodeAt(0) || 0) ^ (1 << (length % 8)));
      return before + flipped + text.slice(from + 1);
    }
    case "cut":
      return before + after;
    case "double":
      return before + part + part + after;
    case "insert":
      return before + odd + text.slice(from);
    case "end":
      return before;
    case "move":
      return before + after + part;
  }
}

/** A valid string, usually with mistakes, and sometimes any other string. */
export function damagedText(valid: Arbitrary<string>): Arbitrary<string> {
  const damaged = fc
    .tuple(valid, edits)
    .map(([text, all]) => all.reduce(edited, text).slice(0, longestText));
  return fc.oneof(
    { weight: 2, arbitrary: valid },
    { weight: 7, arbitrary: damaged },
    { weight: 1, arbitrary: fc.oneof(oddText, fc.string({ unit: codePoint, maxLength: 60 })) },
  );
}

export function damagedBytes(valid: Arbitrary<Uint8Array>): Arbitrary<Uint8Array> {
  const asText = valid.map((bytes) => Buffer.from(bytes).toString("latin1"));
  // Odd characters of other scripts become their UTF-8.
  return damagedText(asText).map((text) => {
    const isBytes = !/[^\0-\xff]/.test(text);
    return new Uint8Array(Buffer.from(text, isBytes ? "latin1" : "utf8"));
  });
}

interface Change {
  readonly kind: "replace" | "remove" | "rename" | "add" | "wrap";
  readonly place: number;
  readonly name: string;
  readonly value: unknown;
}

const changes: Arbitrary<readonly Change[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("replace", "remove", "rename", "add", "wrap"),
    place: fc.nat(mostPlaces),
    name: oddText,
    value: oddValue,
  }),
  { minLength: 1, maxLength: 3 },
);

type Container = Record<string, unknown>;

function changed(root: Container, { kind, place, name, value }: Change): Container {
  const places: [Container, string][] = [];
  const walk = (container: Container) => {
    for (const key of Object.keys(container)) {
      if (places.length === mostPlaces) return;
      places.push([container, key]);
      const member = container[key];
      if (typeof member === "object" && member !== null && !ArrayBuffer.isView(member))
        walk(member as Container); // safe: members of an array have names, too
    }
  };
  walk(root);
  const [container, key] = places[place % Math.max(1, places.length)] ?? [root, name];
  const set = (at: string, given: unknown) =>
    Object.defineProperty(container, at, {
      value: given,
      ...{ enumerable: true, configurable: true, writable: true },
    });
  const present = container[key];
  if (kind === "remove" || kind === "rename") {
    if (Array.isArray(container)) container.splice(Number(key), 1);
    else delete container[key];
  }
  if (kind === "replace") set(key, value);
  if (kind === "wrap") set(key, [present]);
  if (kind === "rename" && !Array.isArray(container)) set(name, present);
  if (kind === "add" && !Array.isArray(container)) set(name, value);
  return root;
}

/** A valid value of JSON's types and bytes, in most cases with mistakes. */
export function damagedValue<Value>(valid: Arbitrary<Value>): Arbitrary<unknown> {
  const damaged = fc
    .tuple(valid, changes)
    .map(
      ([value, all]) => all.reduce(changed, { root: structuredClone(value) } as Container)["root"],
    );
  return fc.oneof({ weight: 1, arbitrary: valid }, { weight: 8, arbitrary: damaged }, oddValue);
}

/** JSON of a valid value, with mistakes in the value, in the text, or in both. */
export function damagedJson(valid: Arbitrary<unknown>): Arbitrary<string> {
  const text = damagedValue(valid).map((value) => JSON.stringify(value) ?? "");
  return fc.oneof({ weight: 3, arbitrary: text }, { weight: 2, arbitrary: damagedText(text) });
}
