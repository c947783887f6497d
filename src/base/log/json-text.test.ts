import vm from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isError, jsonText, startWalk, textLimits } from "./json-text.ts";
import { createRedaction } from "./redaction.ts";

const redaction = createRedaction();
const textOf = (value: unknown, characters = 1_000_000) =>
  jsonText(value, startWalk(redaction, characters), redaction.root);
const written = (value: unknown, characters?: number): unknown =>
  JSON.parse(textOf(value, characters));
const raise = (): never => {
  throw new Error("no");
};
const hostile = new Proxy(
  {},
  {
    get: raise,
    ownKeys: raise,
    getPrototypeOf: raise,
    has: raise,
    getOwnPropertyDescriptor: raise,
  },
);
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  return proxy;
};

/** Secret names short enough to turn up among random ones, in any case and with anything between their letters. */
const secretName = /pwd|jwt|token/i;

describe("plain values", () => {
  it("are written as by JSON.stringify", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (json) => {
        fc.pre(!secretName.test(JSON.stringify(json).replace(/[^a-z]/gi, "")));
        expect(written(json)).toEqual(JSON.parse(JSON.stringify(json)));
      }),
    );
    expect(textOf({ a: [1, "x", null, true, {}, []], b: undefined })).toBe(
      '{"a":[1,"x",null,true,{},[]]}',
    );
  });

  it("may have a member named __proto__", () => {
    expect(textOf(JSON.parse('{"__proto__":{"a":1},"b":2}'))).toBe('{"__proto__":{"a":1},"b":2}');
    expect(textOf(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
  });
});

describe("values without a JSON form", () => {
  const at = new Date("2026-01-02T03:04:05.678Z");
  class Named {}
  class Point {
    x = 1;
  }
  it.each<[string, unknown, unknown]>([
    ["bigint", 123_456_789_012_345_678_901n, "123456789012345678901"],
    ["NaN", Number.NaN, "NaN"],
    ["Infinity", -Infinity, "-Infinity"],
    ["negative zero", -0, 0],
    ["undefined in a list", [undefined], [null]],
    ["a hole in a list", new Array(2), [null, null]],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["a function", function named() {}, "[function named]"],
    [
      "a function without a name",
      (
        () => () =>
          1
      )(),
      "[function]",
    ],
    ["a date", at, at.toISOString()],
    ["an invalid date", new Date(Number.NaN), "[invalid date]"],
    ["a Map", new Map([["a", 1]]), { a: 1 }],
    ["a Map of __proto__", new Map([["__proto__", 1]]), JSON.parse('{"__proto__":1}')],
    ["a Map with other keys", new Map([[at, 1]]), [[at.toISOString(), 1]]],
    ["a Set", new Set([1, "a"]), [1, "a"]],
    ["a Buffer", Buffer.from("secret bytes"), "[Buffer, 12 bytes]"],
    ["a typed array", new Float64Array(4), "[Float64Array, 32 bytes]"],
    ["an ArrayBuffer", new ArrayBuffer(3), "[ArrayBuffer, 3 bytes]"],
    ["a boxed string", Object("x"), "x"],
    ["a URL", new URL("https://a.example/b"), "https://a.example/b"],
    ["an instance with members", new Point(), { x: 1 }],
    ["an instance without any", new Named(), "[Named]"],
    ["a promise", Promise.resolve(1), "[Promise]"],
    ["an object whose class is unknown", Object.create({ constructor: 1 }), "[object]"],
    ["an object of another realm", vm.runInNewContext("({ a: [1] })"), { a: [1] }],
    ["toJSON", { toJSON: () => ({ a: 1 }) }, { a: 1 }],
    ["toJSON that gives itself", selfish(), { a: 1, toJSON: "[function toJSON]" }],
    ["a member named toJSON", { toJSON: 1 }, { toJSON: 1 }],
  ])("include %s", (_name, value, expected) => expect(written(value)).toEqual(expected));

  function selfish() {
    return {
      a: 1,
      toJSON() {
        return this;
      },
    };
  }
});

describe("errors", () => {
  it("have name, message, stack, own members, aggregated errors and the chain of causes", () => {
    const root = new TypeError("root");
    const error = Object.assign(new AggregateError([new Error("one")], "all", { cause: root }), {
      code: "E7",
      status: 503,
    });
    expect(written(error)).toMatchObject({
      name: "AggregateError",
      message: "all",
      stack: error.stack,
      code: "E7",
      status: 503,
      errors: [{ message: "one" }],
      cause: { name: "TypeError", message: "root", stack: root.stack },
    });
  });

  it("are recognized across realms, and a hostile Proxy is not one", () => {
    expect(written(vm.runInNewContext('new RangeError("far")'))).toMatchObject({
      name: "RangeError",
      message: "far",
    });
    expect(isError(hostile)).toBe(false);
  });

  it("have a bounded chain of causes, which may contain the error itself", () => {
    let error = new Error("0");
    for (let index = 1; index < 50; index += 1) error = new Error(`${index}`, { cause: error });
    const text = textOf(error);
    expect(text.match(/"message"/g)).toHaveLength(textLimits.depth);
    expect(text).toContain('"cause":"[too deep]"');
    const own = new Error("own");
    own.cause = own;
    expect(written(own)).toMatchObject({ cause: "[circular]" });
  });

  it("keep their cause even with more members than are written", () => {
    const error = Object.assign(
      new Error("wide", { cause: "why" }),
      Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`m${i}`, i])),
    );
    expect(written(error)).toMatchObject({ message: "wide", m0: 0, cause: "why" });
  });
});

describe("hostile values", () => {
  it.each<[string, unknown, unknown]>([
    [
      "a getter that throws",
      Object.defineProperty({ a: 1 }, "b", { get: raise, enumerable: true }),
      { a: 1, b: "[unreadable]" },
    ],
    ["an item that throws", Object.defineProperty([1, 2], 0, { get: raise }), ["[unreadable]", 2]],
    ["toJSON that throws", { toJSON: raise }, "[unreadable]"],
    ["a Proxy that throws on everything", hostile, "[unreadable]"],
    ["a revoked Proxy", revoked(), "[unreadable]"],
    [
      "a Map whose iterator throws",
      Object.assign(new Map(), { [Symbol.iterator]: raise }),
      "[unreadable]",
    ],
    [
      "a function whose name throws",
      Object.defineProperty(() => 1, "name", { get: raise }),
      "[function]",
    ],
    [
      "an error whose message throws",
      Object.defineProperties(new Error("x"), { message: { get: raise }, stack: { value: 1 } }),
      { name: "Error", message: "[unreadable]", stack: 1 },
    ],
    ["toJSON without an end", endless(), expect.anything()],
  ])("include %s, and throw nothing", (_name, value, expected) => {
    expect(written(value)).toEqual(expected);
    expect(written({ before: 1, value, after: 2 })).toMatchObject({ before: 1, after: 2 });
  });

  function endless(): object {
    return { toJSON: () => endless() };
  }

  it("are marked if cyclic, and written twice if they occur twice", () => {
    const shared = { s: 1 };
    const value: Record<string, unknown> = { a: shared, b: [shared] };
    value["self"] = value;
    expect(written(value)).toEqual({ a: { s: 1 }, b: [{ s: 1 }], self: "[circular]" });
  });
});

describe("bounds", () => {
  it("cuts a string of a megabyte, and says how much is missing", () => {
    const text = written("x".repeat(1_048_576));
    expect(text).toBe(
      `${"x".repeat(textLimits.stringLength)}...[${1_048_576 - textLimits.stringLength} characters cut]`,
    );
  });

  it("bounds a string that grows by escaping", () => {
    expect(textOf("\u0000".repeat(100_000)).length).toBeLessThan(2 * textLimits.stringLength + 200);
    const stack = "line of a stack\n".repeat(400);
    expect(written(stack)).toBe(stack);
  });

  it("bounds depth", () => {
    let value: unknown = "bottom";
    for (let index = 0; index < 10_000; index += 1) value = index % 2 ? [value] : { value };
    const text = textOf(value);
    expect(text).toContain('"[too deep]"');
    expect(text.length).toBeLessThan(200);
  });

  it("bounds members, items and entries, and counts the rest", () => {
    const wide = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`m${index}`, index]),
    );
    expect(Object.entries(written(wide) as object).slice(199)).toEqual([
      ["m199", 199],
      ["[cut]", 800],
    ]);
    const items = Array.from({ length: 1_000 }, (_, index) => index);
    for (const list of [items, new Set(items)])
      expect(written(list)).toEqual([...items.slice(0, 200), "[800 items cut]"]);
    const entries = written(new Map(Object.entries(wide))) as object;
    expect(Object.entries(entries).slice(199)).toEqual([
      ["m199", 199],
      ["[cut]", 800],
    ]);
    expect(written(new Array(1e9))).toEqual([
      ...new Array(200).fill(null),
      "[999999800 items cut]",
    ]);
  });

  it("bounds the whole at any place, and stays valid JSON", () => {
    const value = {
      a: Array.from({ length: 150 }, () => ({ b: "x".repeat(100), c: [1, 2, { d: "y" }] })),
      e: 1,
      f: 2,
    };
    for (let characters = 1; characters < 3_000; characters += 7) {
      const text = textOf(value, characters);
      JSON.parse(text);
      expect(text.length).toBeLessThan(characters + 300);
    }
    expect(written(value, 100)).toEqual({
      a: [
        { b: expect.stringMatching(/^x+\.\.\.\[\d+ characters cut\]$/), "[cut]": 1 },
        "[149 items cut]",
      ],
      "[cut]": 2,
    });
  });

  it("finishes an object that contains itself a hundred times", () => {
    let value: unknown = Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [`u${index}`, undefined]),
    );
    for (let index = 0; index < 9; index += 1) value = new Array(200).fill(value);
    expect(textOf(value, 50_000).length).toBeLessThan(150_000);
  });
});
