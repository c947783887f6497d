import { makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { BasePersistenceLayer } from "@aws-lambda-powertools/idempotency/persistence";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ClaimLayer } from "../../src/hosts/claim-layer/index.ts";
import { type IdempotencyTable, startIdempotencyTable } from "./idempotency-table.ts";

/** What a repeat gets of each kind of result, beside Powertools' own layer; nothing runs twice with `ClaimLayer`. */
let table: IdempotencyTable;
let ids = 0;

beforeAll(async () => {
  table = await startIdempotencyTable();
});
afterAll(() => table.close());
beforeEach(() => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const powertools = () =>
  new DynamoDBPersistenceLayer({ tableName: table.tableName, awsSdkV3Client: table.client() });
const claimLayer = () =>
  new ClaimLayer({ tableName: table.tableName, awsSdkV3Client: table.client(), waitMs: 0 });

/** What the first call and its repeat come to, and how often the function ran; a failure is its reason. */
async function callTwice(
  persistenceStore: BasePersistenceLayer,
  result: () => unknown,
  reader = persistenceStore,
) {
  let runs = 0;
  const fn = async (_event: { id: string }) => {
    runs += 1;
    return result() as string; // any value is stored
  };
  const reasonOf = (error: Error) =>
    new Error(error.cause instanceof Error ? error.cause.message : error.message);
  const event = { id: `event-${++ids}` };
  const first = await makeIdempotent(fn, { persistenceStore })(event).catch(reasonOf);
  const again = await makeIdempotent(fn, { persistenceStore: reader })(event).catch(reasonOf);
  return { first: first as unknown, again: again as unknown, runs };
}

class Money {
  readonly cents = 5;
  readonly #currency = "EUR";
  get shown(): string {
    return `${this.cents} ${this.#currency}`;
  }
}
const nested = (depth: number): unknown => (depth === 0 ? "core" : [nested(depth - 1)]);

describe("a result that Powertools' layer can replay is replayed identically, by either layer", () => {
  const kinds: [string, () => unknown, unknown][] = [
    ["a Set of texts", () => ({ set: new Set(["a", "b"]) }), { set: new Set(["a", "b"]) }],
    ["a Set of numbers", () => new Set([1, 2.5, 3n]), new Set([1, 2.5, 3])],
    ["a Set of bytes", () => new Set([new Uint8Array([1])]), new Set([new Uint8Array([1])])],
    [
      "a Map, as an object",
      () => ({ map: new Map([["a", new Map([[1, "b"]])]]) }),
      { map: { a: { 1: "b" } } },
    ],
    ["an empty Map", () => new Map(), {}],
    ["bytes", () => ({ bytes: new Uint8Array([0, 255]) }), { bytes: new Uint8Array([0, 255]) }],
    ["a Buffer", () => Buffer.from("hello"), new Uint8Array(Buffer.from("hello"))],
    ["a small BigInt, as a number", () => 7n, 7],
    ["a large BigInt", () => [10n ** 30n], [10n ** 30n]],
    ["-0, as 0", () => ({ zero: -0 }), { zero: 0 }],
    ["fractions", () => [0.1, 1e-20, 123456789.125], [0.1, 1e-20, 123456789.125]],
    ["boxed values", () => [new String("a"), new Number(1), new Boolean(false)], ["a", 1, false]],
    ["an object without a prototype", () => Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["methods, left out", () => ({ a: 1, method: () => 1 }), { a: 1 }],
    ["members named by symbols, left out", () => ({ a: 1, [Symbol("s")]: 1 }), { a: 1 }],
    ["getters", () => ({ get a() { return 1; } }), { a: 1 }], // biome-ignore format: one kind a line
    ["null", () => null, null],
    ["empty texts, lists and objects", () => ["", [], {}, { "": "" }], ["", [], {}, { "": "" }]],
  ];
  test.each(kinds)("%s", async (_kind, result, kept) => {
    expect(await callTwice(powertools(), result)).toMatchObject({ again: kept, runs: 1 });
    const returned = result();
    const ours = await callTwice(claimLayer(), () => returned);
    expect(ours).toEqual({ first: returned, again: kept, runs: 1 });
    expect(await callTwice(claimLayer(), result, powertools())).toMatchObject({
      again: kept,
      runs: 1,
    });
  });
});

describe("a result that Powertools' layer rejects or changes is stored as JSON", () => {
  const kinds: [string, () => unknown, unknown][] = [
    ["a date, as text", () => ({ at: new Date(0) }), { at: "1970-01-01T00:00:00.000Z" }],
    [
      "an instance of a class, its public members",
      () => ({ price: new Money() }),
      { price: { cents: 5 } },
    ],
    ["what has a toJSON", () => new URL("https://example.com/"), "https://example.com/"],
    ["undefined members, left out", () => ({ a: { b: undefined }, c: 1 }), { a: {}, c: 1 }],
    [
      "undefined and holes in a list",
      () => Object.assign([undefined, 1], { 3: () => 1 }),
      [null, 1, null, null],
    ],
    ["symbols, left out", () => ({ a: Symbol("s"), b: 1 }), { b: 1 }],
    ["numbers beyond the safe integers", () => [2 ** 53, 1e21, 1.5e300], [2 ** 53, 1e21, 1.5e300]],
    ["numbers too small for DynamoDB", () => ({ tiny: 1e-200 }), { tiny: 1e-200 }],
    [
      "a member named __proto__",
      () => JSON.parse('{"__proto__":{"a":1}}'),
      JSON.parse('{"__proto__":{"a":1}}'),
    ],
    ["nothing, as null", () => undefined, null],
    ["more than 400 KB", () => "x".repeat(410_000), "x".repeat(410_000)],
    [
      "a list of 100,000 numbers",
      () => Array.from({ length: 100_000 }, (_, i) => i),
      Array.from({ length: 100_000 }, (_, i) => i),
    ],
  ];
  test.each(kinds)("%s", async (_kind, result, kept) => {
    const stock = await callTwice(powertools(), result);
    expect(
      stock.first instanceof Error || JSON.stringify(stock.again) !== JSON.stringify(kept),
    ).toBe(true);
    const returned = result();
    expect(await callTwice(claimLayer(), () => returned)).toEqual({
      first: returned,
      again: kept,
      runs: 1,
    });
  });

  test("buffers and views of every kind are stored as bytes", async () => {
    const bytes = new Uint8Array([1, 2, 3, 4]);
    for (const kind of [bytes.buffer, new DataView(bytes.buffer), new Uint16Array(bytes.buffer)]) {
      expect(await callTwice(claimLayer(), () => kind)).toEqual({
        first: kind,
        again: bytes,
        runs: 1,
      });
    }
  });

  test("results that an emulator accepts and DynamoDB rejects are stored", async () => {
    for (const kept of [{ "\ud800": "\udfff" }, nested(60)]) {
      expect(await callTwice(claimLayer(), () => kept)).toEqual({
        first: kept,
        again: kept,
        runs: 1,
      });
      expect(await callTwice(claimLayer(), () => kept, powertools())).toMatchObject({
        again: expect.any(Uint8Array),
      });
    }
  });

  test("values outside JSON are stored beyond 400 KB, and where DynamoDB rejects them as attributes", async () => {
    const large = { bytes: new Uint8Array(500_000).fill(7), set: new Set(["a"]), huge: 10n ** 20n };
    expect(await callTwice(claimLayer(), () => large)).toMatchObject({ again: large, runs: 1 });
    const unpaired = { bytes: new Uint8Array([1]), text: "\ud800" };
    expect(await callTwice(claimLayer(), () => unpaired)).toMatchObject({
      again: unpaired,
      runs: 1,
    });
    const tooLong = { huge: 10n ** 50n + 1n, set: new Set([new Uint8Array([1])]) };
    expect(await callTwice(claimLayer(), () => tooLong)).toMatchObject({ again: tooLong, runs: 1 });
  });
});

describe("a result that cannot be stored is an error that names it, and the function does not run again", () => {
  const circular: Record<string, unknown> = { a: {} };
  circular["a"] = [circular];
  const kinds: [string, () => unknown, string][] = [
    ["NaN", () => ({ total: [1, Number.NaN] }), "result.total[1] is NaN"],
    ["an infinity", () => -1 / 0, "result is -Infinity"],
    ["an invalid date", () => ({ at: new Date("never") }), "result.at is an invalid date"],
    ["a cycle", () => circular, "result.a[0] refers to itself"],
    [
      "an empty Set",
      () => ({ set: new Set() }),
      "result.set is a Set with other values than only strings",
    ],
    [
      "a Set of mixed kinds",
      () => new Set([1, "a"]),
      "result is a Set with other values than only strings",
    ],
    [
      "a Set of objects",
      () => new Set([{}]),
      "result is a Set with other values than only strings",
    ],
    [
      "a Map with keys that are objects",
      () => new Map([[{}, 1]]),
      "result is a Map with keys other than strings",
    ],
    ["an error", () => ({ failure: new Error("no") }), "result.failure is a Error"],
    ["a regular expression", () => [/a/], "result[0] is a RegExp"],
    ["a promise in it", () => ({ later: Promise.resolve(1) }), "result.later is a Promise"],
    ["a function", () => () => 1, "result is a function"],
    ["a symbol", () => Symbol("s"), "result is a symbol"],
    [
      "a number beyond the safe integers beside bytes",
      () => [new Uint8Array(1), 2 ** 60],
      "greater than Number.MAX_SAFE_INTEGER",
    ],
    ["a toJSON that throws", () => ({ toJSON: () => fail("no JSON of me") }), "no JSON of me"],
    ["a getter that throws something else", () => ({ get a() { throw "nothing"; } }), "nothing"], // biome-ignore format: one kind a line
  ];
  test.each(kinds)("%s", async (_kind, result, problem) => {
    const { first, again, runs } = await callTwice(claimLayer(), result);
    expect(runs).toBe(1);
    expect(first).toMatchObject({ message: expect.stringContaining(problem) });
    expect(first).toMatchObject({
      message: expect.stringContaining("the function has run, and its result could not be stored"),
    });
    expect(again).toEqual(first);
  });

  test("the error is truncated to fit a record", async () => {
    const { first, runs } = await callTwice(claimLayer(), () => ({
      ["x".repeat(5_000)]: Number.NaN,
    }));
    expect((first as Error).message.length).toBeLessThan(500); // it is one
    expect(runs).toBe(1);
  });
});

function fail(message: string): never {
  throw new Error(message);
}
