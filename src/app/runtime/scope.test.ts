import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { adoptRequestId, createRequestIds } from "./scope.ts";

const generate = () => "generated";
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:=+/@-";

describe("adoptRequestId", () => {
  test("keeps a valid header unchanged", () => {
    expect(adoptRequestId("Root=1-67891233-abcdef012345678912345678", generate)).toEqual({
      requestId: "Root=1-67891233-abcdef012345678912345678",
    });
  });

  test("generates an ID when there is no header, and reports nothing", () => {
    expect(adoptRequestId(undefined, generate)).toEqual({ requestId: "generated" });
  });

  test.each([
    ["empty", "", 0],
    ["two values joined", "a, b", 4],
    ["a line break at its end", "abc\n", 4],
    ["a line break inside", "a\r\nset-cookie: x", 16],
    ["a space", "a b", 3],
    ["markup", "<script>", 8],
    ["129 characters", "a".repeat(129), 129],
    ["a megabyte", "a".repeat(1_048_576), 1_048_576],
    ["other digits", "١٢٣", 3],
    ["half a surrogate pair", "\ud800", 1],
    ["NUL", "a\0", 2],
  ])(
    "replaces a header that is or has %s, and reports only its length",
    (_, header, rejectedLength) => {
      expect(adoptRequestId(header, generate)).toEqual({ requestId: "generated", rejectedLength });
    },
  );

  test("accepts exactly the IDs that a check of each character accepts", () => {
    const character = fc.oneof(
      { weight: 200, arbitrary: fc.constantFrom(...alphabet) },
      fc.string({ unit: codePoint, maxLength: 2 }),
    );
    fc.assert(
      fc.property(fc.array(character, { maxLength: 140, size: "max" }), (characters) => {
        const header = characters.join("");
        const acceptable =
          header.length >= 1 &&
          header.length <= 128 &&
          header.split("").every((unit) => alphabet.includes(unit));
        expect(adoptRequestId(header, generate)).toEqual(
          acceptable
            ? { requestId: header }
            : { requestId: "generated", rejectedLength: header.length },
        );
      }),
    );
  });

  test("accepts every ID it generates", () => {
    const next = createRequestIds({ now: () => Date.now() });
    for (let round = 0; round < 1000; round++) {
      const id = next();
      expect(adoptRequestId(id, generate)).toEqual({ requestId: id });
    }
  });
});

describe("a generated ID", () => {
  const pattern = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
  /** Returns the first ID of a generator that draws `bytes`. */
  const idOf = (now: number, bytes: Uint8Array) =>
    createRequestIds({ now: () => now }, (pool) => pool.set(bytes))();

  test("is the example of RFC 9562, with a counter that starts in its lower half", () => {
    const random = Uint8Array.of(0xcc, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f);
    expect(idOf(0x017f22e279b0, random)).toBe("017f22e2-79b0-74c3-98c4-dc0c0c07398f");
  });

  test("has version 7, the variant, the time and the given random bits", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 2 ** 48 - 1 }),
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (now, bytes) => {
          const id = idOf(now, bytes);
          expect(id).toMatch(pattern);
          expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(now);
          const given = Buffer.from(bytes).toString("hex");
          const counter = Number.parseInt(given.slice(1, 4), 16) & 0x7ff;
          expect(Number.parseInt(id.slice(15, 18), 16)).toBe(counter);
          expect(id.slice(20)).toBe(`${given.slice(5, 8)}-${given.slice(8)}`);
        },
      ),
    );
  });

  test.each([-0.5, 0.5, 2 ** 48, 1e20])("keeps its format at the unusual time %d", (now) => {
    expect(idOf(now, new Uint8Array(10))).toMatch(pattern);
  });
});

describe("createRequestIds", () => {
  test("uses the given time, and reads its clock only without one", () => {
    const next = createRequestIds({ now: () => 0 });
    const timeOf = (id: string) => Number.parseInt(id.replace("-", "").slice(0, 12), 16);

    expect([timeOf(next(1_700_000_000_000)), timeOf(next())]).toEqual([1_700_000_000_000, 0]);
  });

  test("never repeats an ID, and keeps those of one millisecond in order", () => {
    const next = createRequestIds({ now: () => 1_700_000_000_000 });
    const ids = Array.from({ length: 2000 }, next);
    expect(new Set(ids).size).toBe(2000);
    expect(ids).toEqual(ids.toSorted());
  });

  test("sorts IDs of later milliseconds after earlier ones", () => {
    let now = 1_700_000_000_000;
    const next = createRequestIds({ now: () => now++ });
    const ids = Array.from({ length: 2000 }, next);
    expect(ids).toEqual(ids.toSorted());
  });

  test("draws random bytes once for about 400 IDs, and uses none of them twice", () => {
    let draws = 0;
    const next = createRequestIds({ now: () => 0 }, (pool) => {
      draws += 1;
      crypto.getRandomValues(pool);
    });
    const tails = Array.from({ length: 409 }, () => next().slice(19));
    expect(draws).toBe(1);
    expect(new Set(tails).size).toBe(409);
    next();
    expect(draws).toBe(2);
  });

  test("keeps the format when one millisecond needs more IDs than the counter holds", () => {
    const next = createRequestIds({ now: () => 0 });
    const ids = Array.from({ length: 10_000 }, next);
    expect(new Set(ids).size).toBe(10_000);
    expect(ids.every((id) => id[14] === "7")).toBe(true);
  });

  test("gives different IDs to two processes that start in the same millisecond", () => {
    const clock = { now: () => 0 };
    expect(createRequestIds(clock)()).not.toBe(createRequestIds(clock)());
  });
});
