import { expect, test } from "vitest";
import { inPool } from "./pool.ts";

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test.each([0, 1, 3, 4, 50])(
  "runs at most 4 of %i at the same time, and keeps their order",
  async (count) => {
    let [running, most] = [0, 0];
    const results = await inPool(numbers(count), 4, async (n) => {
      running += 1;
      most = Math.max(most, running);
      for (let turns = 0; turns <= (n * 7) % 5; turns += 1) await turn();
      running -= 1;
      return n * 2;
    });

    expect(results).toEqual(numbers(count).map((n) => n * 2));
    expect(most).toBe(Math.min(4, count));
  },
);

test("starts all even if one fails, and rejects with the first error", async () => {
  const started: number[] = [];
  const work = async (n: number) => {
    started.push(n);
    await turn();
    if (n === 1 || n === 4) throw new Error(`${n} failed`);
  };

  await expect(inPool(numbers(6), 2, work)).rejects.toThrow("1 failed");
  while (started.length < 6) await turn();
  expect(started).toEqual(numbers(6));
});
