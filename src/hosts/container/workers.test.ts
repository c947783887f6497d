import { expect, test, vi } from "vitest";
import { RunningWork } from "./workers.ts";

/** Work that ends when the test says so. */
function begun(running: RunningWork) {
  const { promise, resolve } = Promise.withResolvers<void>();
  running.add(promise);
  return resolve;
}

test("a slot is free as soon as any work ends, not only the oldest", async () => {
  const running = new RunningWork();
  await running.fewerThan(1);
  const [endFirst, endSecond] = [begun(running), begun(running)];
  const freed: string[] = [];
  const waits = [
    running.fewerThan(2).then(() => void freed.push("one")),
    running.fewerThan(1).then(() => void freed.push("all")),
  ];
  await running.fewerThan(3);
  expect(freed).toEqual([]);
  endSecond();
  await waits[0];
  expect(freed).toEqual(["one"]);
  const endThird = begun(running);
  endFirst();
  await running.fewerThan(2);
  expect(freed).toEqual(["one"]);
  endThird();
  await Promise.all(waits);
  expect(freed).toEqual(["one", "all"]);
});

test("waiting leaves nothing behind at work that goes on", async () => {
  const running = new RunningWork();
  const long = new Promise<void>(() => {});
  const then = vi.spyOn(long, "then");
  running.add(long);
  for (let index = 0; index < 100; index += 1) {
    const end = begun(running);
    const isFree = running.fewerThan(2);
    end();
    await isFree;
  }

  expect(then).toHaveBeenCalledTimes(1);
});
