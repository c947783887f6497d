import fc from "fast-check";
import { expect, test } from "vitest";
import { createReadWriteLock } from "./atomic-writes.ts";

test("a writer runs alone, and readers see every write requested before them", async () => {
  const step = fc.record({
    kind: fc.constantFrom("read" as const, "write" as const),
    ticks: fc.nat(3),
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const lock = createReadWriteLock();
      let readers = 0;
      let writers = 0;
      let written = 0;
      let asked = 0;
      const runs = steps.map(({ kind, ticks, fails }) => {
        const expected = kind === "write" ? asked++ : asked;
        return lock[kind](async () => {
          expect(written).toBe(expected);
          expect(writers).toBe(0);
          if (kind === "write") expect(readers).toBe(0);
          if (kind === "write") writers += 1;
          else readers += 1;
          for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
          if (kind === "write") writers -= 1;
          else readers -= 1;
          if (kind === "write") written += 1;
          if (fails) throw new Error("planned");
          return kind;
        });
      });
      const outcomes = await Promise.allSettled(runs);
      expect(outcomes).toEqual(
        steps.map(({ kind, fails }) =>
          fails
            ? { status: "rejected", reason: new Error("planned") }
            : { status: "fulfilled", value: kind },
        ),
      );
    }),
  );
});

test("readers run concurrently", async () => {
  const lock = createReadWriteLock();
  const met: (() => void)[] = [];
  const meet = () =>
    lock.read(
      () =>
        new Promise<void>((resolve) => {
          met.push(resolve);
          if (met.length === 2) for (const go of met) go();
        }),
    );
  await Promise.all([meet(), meet()]);
  expect(met).toHaveLength(2);
});
