import fc from "fast-check";
import { expect, test } from "vitest";
import { createKeyedLimiter } from "./name-lookup.ts";

const never = new AbortController().signal;

test("runs at most the limit of calls per key, and the others in order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.constantFrom("a", "b"), { maxLength: 12 }),
      async (scheduler, keys) => {
        const limited = createKeyedLimiter(2);
        const running = new Map<string, number>();
        const begun: Record<string, number[]> = { a: [], b: [] };
        await scheduler.waitFor(
          Promise.all(
            keys.map((key, number) =>
              limited(key, never, async () => {
                const count = (running.get(key) ?? 0) + 1;
                expect(count).toBeLessThanOrEqual(2);
                running.set(key, count);
                begun[key]?.push(number);
                await scheduler.schedule(Promise.resolve());
                running.set(key, (running.get(key) ?? 0) - 1);
              }),
            ),
          ),
        );
        expect(Object.values(begun).flat().length).toBe(keys.length);
        for (const numbers of Object.values(begun))
          expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
      },
    ),
  );
});

test("returns a call's result or failure and frees its slot either way", async () => {
  const limited = createKeyedLimiter(1);
  const given = [1, 2, 3].map((number) =>
    limited("a", never, async () => {
      if (number === 1) throw new Error("broken");
      return number;
    }),
  );
  expect(await Promise.allSettled(given)).toMatchObject([
    { reason: new Error("broken") },
    { status: "fulfilled", value: 2 },
    { status: "fulfilled", value: 3 },
  ]);
});

test("a waiting call leaves when aborted, and the calls behind it move up", async () => {
  const limited = createKeyedLimiter(1);
  const end = Promise.withResolvers<void>();
  const first = limited("a", never, () => end.promise);
  const leaving = new AbortController();
  const second = limited("a", leaving.signal, async () => "ran");
  const third = limited("a", never, async () => "third");
  leaving.abort(new Error("too late"));
  await expect(second).rejects.toThrow("too late");
  end.resolve();
  await first;
  expect(await third).toBe("third");
});

test("a call aborted before its start does not run and takes no slot", async () => {
  const limited = createKeyedLimiter(1);
  const ran: string[] = [];
  await expect(
    limited("a", AbortSignal.abort(new Error("over")), async () => ran.push("aborted")),
  ).rejects.toThrow("over");
  await limited("a", never, async () => ran.push("other"));
  expect(ran).toEqual(["other"]);
});
