import { expect, test, vi } from "vitest";
import { lazy } from "./lazy.ts";

test("a value is opened once, for the first that need it, and is there for those after", async () => {
  const open = vi.fn(async () => ({}));
  const lent = lazy(open);
  expect([lent.value, lent.opening, open.mock.calls.length]).toEqual([undefined, undefined, 0]);
  const [first, second] = await Promise.all([lent.open(), lent.open()]);
  expect(first).toBe(second);
  expect(lent.value).toBe(first);
  expect(await lent.open()).toBe(first);
  expect(open).toHaveBeenCalledTimes(1);
});

test("where opening fails, the next tries again", async () => {
  const lent = lazy(vi.fn(async () => "there").mockRejectedValueOnce(new Error("not there")));
  await expect(lent.open()).rejects.toThrow("not there");
  expect([lent.value, lent.opening]).toEqual([undefined, undefined]);
  expect(await lent.open()).toBe("there");
});
