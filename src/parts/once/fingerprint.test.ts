import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { comparedAs, fingerprintOf } from "./fingerprint.ts";

const of = (input: unknown) => fingerprintOf("files.file.create", input);

test("ignores the order of members, but not of list items", () => {
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

test.each([1, 2, 3, 16, 17, 40])("ignores the order of %i members and the locale", (count) => {
  const names = ["B", "a", "é", "Z", "10", "9", "\u{1f600}", "\uffff"];
  const entries = Array.from(
    { length: count },
    (_, index) => [`${names[index % names.length]}${index}`, index] as const,
  );
  const text = JSON.stringify(
    Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1))),
  );
  for (const order of [
    entries,
    entries.toReversed(),
    entries.toSorted(([a], [b]) => a.localeCompare(b)),
  ]) {
    expect(fingerprintOf("r", Object.fromEntries(order))).toBe(
      fingerprintOf("r", JSON.parse(text)),
    );
  }
});

test("values of different types and calls of different handlers have different fingerprints", () => {
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

test("equal JSON has equal fingerprints, and different JSON has different ones", () => {
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

test("refuses a cycle instead of following it forever", () => {
  const circle: { itself?: unknown } = {};
  circle.itself = circle;
  expect(() => of(circle)).toThrow("nested too deeply");
});

/** As the first version made them: one that changes would make another request of a repeat during a rolling deployment. */
test.each<[string, unknown, string]>([
  ["nothing", {}, "89HP7MO4T9i2BXvCuK2RVBxozLYEmpprcjoGSsE8DRo"],
  [
    "nothing, without a prototype",
    Object.create(null),
    "89HP7MO4T9i2BXvCuK2RVBxozLYEmpprcjoGSsE8DRo",
  ],
  [
    "members",
    { name: "a.txt", sizeMb: 1.5, tags: ["a", "b"], nothing: null, absent: undefined },
    "LiCLdf9UFtr93aJL3LCe47fRVHrOmlTqWam2-EOQr_w",
  ],
  ["text", '\u00e9"\\\n', "By-IVRdc3lC72TcJDvVKvrArZ2_LWQ98w2jFFO3iV-I"],
  [
    "numbers",
    [0, -0, 1e21, 0.1, Number.NaN, Number.POSITIVE_INFINITY],
    "4H-VidLg-eDyXoQmlj7GRL13C-kswp00z_SW0XqOv2w",
  ],
  [
    "flags and nothing",
    [true, false, null, undefined],
    "FocTmLDeS4KI8NRM_7okR3ohKhZfpYWvVO0eUk6owzM",
  ],
  ["a bigint", 12n, "QeFyEKFbi51XHyylLx9dn9g3SfWdPuF4JQHTeeqFgtM"],
  ["a date", new Date(86_400_000), "CLu1U_sc3rdCYJTN3jx4cqLWhDQ7IH5Msiw65fSZ9D4"],
  ["a buffer", Buffer.from("abc"), "_iGtAXUcBVQWgiOrpga_6_VjRRCtlCjM541k4oBjjG0"],
  ["bytes", new Uint8Array([1, 2]), "_3qwnKrVSLqaSAxm8-wsLHBppJnYTP6xlSyGph1h__A"],
  [
    "a map",
    new Map<unknown, unknown>([
      ["b", 1],
      ["a", { c: 2 }],
    ]),
    "oSXWXm8qkDLrip5dHVfMjPlmyHR_ZSB4bQcLtgmQXy4",
  ],
  ["a set", new Set(["b", "a", 1]), "11M82AvUPuLXMBeiSBZhH5Pi_F0VNKmmp4Zz1hMgT-w"],
  [
    "nested",
    { z: { __proto__x: 1, é: [[], [{}]] } },
    "rRGpJaxotbvIcaaMJyJD9dMBR22KVFvREBAj0maNPD0",
  ],
])("the fingerprint of plain values is stable: %s", (_, value, expected) => {
  expect(of(value)).toBe(`v1:${expected}`);
});

class Amount {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  get cents() {
    return this.#cents;
  }
}

class Tagged extends Map<string, number> {
  readonly #tag = "tag";
  get tag() {
    return this.#tag;
  }
}

const opaque: readonly [string, unknown][] = [
  ["a URL", new URL("https://example.com/a")],
  ["a regular expression", /a/],
  ["a buffer's memory", new ArrayBuffer(1)],
  ["other numbers in a row", new Float64Array([1])],
  ["a class with private members", new Amount(1)],
  ["a class derived from Map", new Tagged()],
  ["a class derived from Date", new (class extends Date {})(0)],
  ["bytes of a derived class", new (class extends Uint8Array {})(1)],
  ["a list of a derived class", new (class extends Array<number> {})(1)],
  ["an object that inherits", Object.create({ inherited: 1 })],
  [
    "one that inherits from what inherits nothing",
    Object.create(Object.assign(Object.create(null), { inherited: 1 })),
  ],
  ["a boxed text", Object("a")],
  ["a function", () => 1],
  ["a symbol", Symbol("a")],
  ["a member by a symbol", { [Symbol("a")]: 1 }],
  ["a date with members", Object.assign(new Date(0), { zone: "UTC" })],
  ["an error", new Error("a")],
  ["a promise", Promise.resolve(1)],
];

test.each(opaque)("%s is never compared; the schema's input is compared instead", (_, value) => {
  const [one, other] = [{ at: "https://one.example" }, { at: "https://other.example" }];
  for (const input of [value, { value }, [value], new Map([["a", value]]), new Set([{ value }])]) {
    expect(fingerprintOf("a", input, () => one)).toBe(
      fingerprintOf("a", input, () => structuredClone(one)),
    );
    expect(fingerprintOf("a", input, () => one)).not.toBe(fingerprintOf("a", input, () => other));
    expect(fingerprintOf("a", input, () => one)).not.toBe(fingerprintOf("a", one));
    expect(() => fingerprintOf("a", input)).toThrow(
      "cannot be compared with the input of a retry; take plain data, or turn `once` off",
    );
    expect(() => fingerprintOf("a", input, () => value)).toThrow("cannot be compared");
  }
});

test("does not treat values with hidden state as plain data", () => {
  const hidden = (value: string) =>
    Object.defineProperty({ a: 1 }, "b", { value, enumerable: false });
  for (const make of [
    hidden,
    (value: string) => /\d+/.exec(`${value} 7`), // a match has the text beside its items
    (value: string) => Object.assign([1, 2], { value }),
    (value: string) => Object.assign([], { value }),
  ]) {
    const [one, other] = [make("one"), make("other")];
    expect(() => of(one)).toThrow("cannot be compared");
    expect(fingerprintOf("a", { one }, () => "one")).not.toBe(
      fingerprintOf("a", { one: other }, () => "other"),
    );
  }
});

test("plain data of any realm needs no schema input", async () => {
  const { runInNewContext } = await import("node:vm");
  const elsewhere: unknown = runInNewContext("({ a: 1, b: { c: 2 } })");
  const never = () => {
    throw new Error("asked for");
  };
  expect(fingerprintOf("a", elsewhere, never)).toBe(fingerprintOf("a", { a: 1, b: { c: 2 } }));
});

test("arbitrary values have the same fingerprint only if they are equal", () => {
  const value = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
  });
  const lookOf = (input: unknown) => {
    try {
      return of(input);
    } catch {
      return undefined;
    }
  };
  fc.assert(
    fc.property(value, value, (one, other) => {
      const [first, second] = [lookOf(one), lookOf(other)];
      fc.pre(first !== undefined && second !== undefined);
      // Only what is the same for a handler: absent members, holes, prototypes and the sign of zero.
      if (first === second) expect(normal(one)).toEqual(normal(other));
      else expect(one).not.toStrictEqual(other);
    }),
    { numRuns: runs(2_000) },
  );
});

/** Without what does not count: the kind of a list of bytes, -0. */
function normal(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return Array.from(value, normal);
  if (value instanceof Map)
    return new Map(Array.from(value, ([name, part]) => [normal(name), normal(part)]));
  if (value instanceof Set) return new Set(Array.from(value, normal));
  if (
    typeof value !== "object" ||
    value === null ||
    value instanceof Date ||
    value instanceof Uint8Array
  )
    return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, normal(part)]));
}

test("ignores an empty prototype, and refuses one with members", () => {
  expect(of(Object.create(Object.create(null)))).toBe(of({}));
  expect(() => of(Object.create(Object.assign(Object.create(null), { a: 1 })))).toThrow(
    "cannot be compared",
  );
});

test("compares an object by the digest that its maker gave it, wherever it is", () => {
  const file = (digest: string) =>
    Object.defineProperty(new File(["a"], "a"), comparedAs, { value: digest, enumerable: true });
  expect(of({ a: [file("1")] })).toBe(of({ a: [file("1")] }));
  expect(of({ a: [file("1")] })).not.toBe(of({ a: [file("2")] }));
  expect(() => of({ a: new File(["a"], "a") })).toThrow("cannot be compared");
});
