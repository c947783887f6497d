import { expect, test, vi } from "vitest";
import { lazy } from "./lazy.ts";

test("opens a value once, for concurrent and later callers", async () => {
  const open = vi.fn(async () => ({}));
  const lent = lazy(open);
  expect([lent.value, lent.opening, open.mock.calls.length]).toEqual([undefined, undefined, 0]);
  const [first, second] = await Promise.all([lent.open(), lent.open()]);
  expect(first).toBe(second);
  expect(lent.value).toBe(first);
  expect(await lent.open()).toBe(first);
  expect(open).toHaveBeenCalledTimes(1);
});

test("tries again after a failure", async () => {
  const lent = lazy(vi.fn(async () => "there").mockRejectedValueOnce(new Error("not there")));
  await expect(lent.open()).rejects.toThrow("not there");
  expect([lent.value, lent.opening]).toEqual([undefined, undefined]);
  expect(await lent.open()).toBe("there");
});
