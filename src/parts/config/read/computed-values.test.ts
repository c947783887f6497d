import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ComputedNode, type ComputedValues, createComputedValues } from "./computed-values.ts";

/** What a key's function reads: in turn, or all at once. */
interface Plan {
  readonly reads: readonly string[];
  readonly atOnce: boolean;
}

/** Reads keys whose functions follow their plans; each value is 1 plus the values of what it reads. */
function reader(
  plans: Readonly<Record<string, Plan>>,
  values: ComputedValues,
  pause: () => Promise<void> = async () => {},
) {
  const runs: string[] = [];
  const read = async (key: string, from: ComputedNode | undefined): Promise<number> => {
    await pause();
    return Number(await values.read(key, from, (node) => compute(key, node)));
  };
  const compute = async (key: string, node: ComputedNode): Promise<number> => {
    runs.push(key);
    const { reads = [], atOnce = false } = plans[key] ?? {};
    let sum = 1;
    if (atOnce) {
      for (const value of await Promise.all(reads.map((next) => read(next, node)))) sum += value;
    } else {
      for (const next of reads) sum += await read(next, node);
    }
    return sum;
  };
  return { read: (key: string) => read(key, undefined), runs };
}

function inTurn(...reads: string[]): Plan {
  return { reads, atOnce: false };
}

function atOnce(...reads: string[]): Plan {
  return { reads, atOnce: true };
}

describe("computed values", () => {
  test("evaluate a key once for repeated and concurrent reads", async () => {
    const { read, runs } = reader(
      { a: atOnce("c", "c", "b"), b: inTurn("c") },
      createComputedValues(),
    );
    expect(await Promise.all([read("a"), read("b"), read("a"), read("c")])).toEqual([5, 2, 5, 1]);
    expect(await read("a")).toBe(5);
    expect(runs.sort()).toEqual(["a", "b", "c"]);
  });

  test("share a failure as well", async () => {
    const values = createComputedValues();
    let runs = 0;
    const fail = () => {
      runs += 1;
      throw new Error("no plan");
    };
    await expect(values.read("a", undefined, fail)).rejects.toThrow("no plan");
    await expect(values.read("a", undefined, fail)).rejects.toThrow("no plan");
    expect(runs).toBe(1);
  });

  test("are not shared between requests", async () => {
    const read = (value: number) => createComputedValues().read("a", undefined, () => value);
    expect(await Promise.all([read(1), read(2)])).toEqual([1, 2]);
  });
});

describe("cycles of computed keys", () => {
  test.each([
    ["a key that reads itself", { a: inTurn("a") }, "a -> a"],
    ["two keys that read each other", { a: inTurn("b"), b: inTurn("a") }, "a -> b -> a"],
    ["a circle of three", { a: inTurn("b"), b: inTurn("c"), c: inTurn("a") }, "a -> b -> c -> a"],
    [
      "a circle behind the key that was read",
      { a: inTurn("b"), b: inTurn("c"), c: inTurn("b") },
      "b -> c -> b",
    ],
    ["reads that are made at once", { a: atOnce("d", "b"), b: atOnce("d", "a") }, "a -> b -> a"],
  ])("%s: reports %s %s", async (_, plans, circle) => {
    const { read } = reader(plans, createComputedValues());
    await expect(read("a")).rejects.toThrow(`computed config keys wait for each other: ${circle};`);
  });

  test("are detected when both keys are read concurrently", async () => {
    const { read } = reader({ a: inTurn("b"), b: inTurn("a") }, createComputedValues());
    const outcomes = await Promise.allSettled([read("a"), read("b")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test("do not include a diamond", async () => {
    const { read } = reader(
      { a: atOnce("b", "c"), b: inTurn("d"), c: inTurn("d") },
      createComputedValues(),
    );
    expect(await read("a")).toBe(5);
  });

  test("do not block on a function that keeps reading after it has returned", async () => {
    const values = createComputedValues();
    let go = () => {};
    const released = new Promise<void>((resolve) => {
      go = resolve;
    });
    let left: Promise<unknown> | undefined;
    // a asks for b and returns without waiting; b then reads a, which has its value by now.
    const compute = (node: ComputedNode) => {
      left = values.read("b", node, async (other) => {
        await released;
        return values.read("a", other, () => 0);
      });
      return 1;
    };
    expect(await values.read("a", undefined, compute)).toBe(1);
    go();
    expect(await left).toBe(1);
  });

  test("do not include a read that a function makes after it has returned", async () => {
    const values = createComputedValues();
    let a: ComputedNode | undefined;
    await values.read("a", undefined, (node) => {
      a = node;
    });
    // b has asked for a, and is still at work when what a left behind asks for b.
    let late: Promise<unknown> | undefined;
    const b = values.read("b", undefined, async (node) => {
      await values.read("a", node, () => 0);
      late = values.read("b", a, () => 0);
      return 5;
    });
    expect(await b).toBe(5);
    expect(await late).toBe(5);
  });

  test("fail exactly the keys that can reach them, for any graph, order and timing", async () => {
    const keys = ["a", "b", "c", "d", "e", "f"];
    const plan = fc.record({
      reads: fc.array(fc.constantFrom(...keys), { maxLength: 3 }),
      atOnce: fc.boolean(),
    });
    const graph = fc.record(Object.fromEntries(keys.map((key) => [key, plan])));
    await fc.assert(
      fc.asyncProperty(
        graph,
        fc.array(fc.constantFrom(...keys), { minLength: 1 }),
        fc.scheduler(),
        async (plans, reads, s) => {
          const { read, runs } = reader(plans, createComputedValues(), () =>
            s.schedule(Promise.resolve()),
          );
          const outcomes = Promise.allSettled(reads.map(read));
          await s.waitFor(outcomes);
          for (const [index, outcome] of (await outcomes).entries()) {
            const expected = modelValue(plans, reads[index] ?? "", []);
            if (expected === undefined) expect(outcome).toMatchObject({ status: "rejected" });
            else expect(outcome).toEqual({ status: "fulfilled", value: expected });
          }
          expect(new Set(runs).size).toBe(runs.length);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** The naive model: plain recursion; `undefined` where it would never end. */
function modelValue(
  plans: Readonly<Record<string, Plan>>,
  key: string,
  path: readonly string[],
): number | undefined {
  if (path.includes(key)) return undefined;
  let sum = 1;
  for (const next of plans[key]?.reads ?? []) {
    const value = modelValue(plans, next, [...path, key]);
    if (value === undefined) return undefined;
    sum += value;
  }
  return sum;
}
