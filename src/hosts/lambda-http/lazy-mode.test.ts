import middy from "@middy/core";
import { expect, test, vi } from "vitest";
import { lazyMode, type Mode } from "./lazy-mode.ts";

/** Runs the handler with what it was given, and says so. */
const plainMode: Mode =
  ({ befores, handler }) =>
  async (event, context) => [befores.length, await handler(event, context, "options")];

const echo = async (event: unknown, context: unknown, options: unknown) => [
  event,
  context,
  options,
];
type Invoke = (event: unknown, context: unknown) => Promise<unknown>;

test("loads a mode on the first invocation, once for all concurrent ones", async () => {
  const load = vi.fn(async () => plainMode);
  const invoke = middy({ executionMode: lazyMode(load) }).handler(echo as never) as Invoke;
  expect(load).not.toHaveBeenCalled();
  const all = await Promise.all([invoke("a", "c"), invoke("b", "c")]);
  expect([...all, await invoke("d", "c")]).toEqual(
    ["a", "b", "d"].map((event) => [0, [event, "c", "options"]]),
  );
  expect(load).toHaveBeenCalledTimes(1);
});

test("a failed load fails its invocation, and the next one retries it", async () => {
  const load = vi.fn(async () => plainMode).mockRejectedValueOnce(new Error("not there"));
  const invoke = middy({ executionMode: lazyMode(load) }).handler(echo as never) as Invoke;
  await expect(invoke("a", "c")).rejects.toThrow("not there");
  expect(await invoke("b", "c")).toEqual([0, ["b", "c", "options"]]);
});

test("applies middlewares and a handler that are added later", async () => {
  const function_ = middy({ executionMode: lazyMode(async () => plainMode) }).handler(
    echo as never,
  );
  const invoke = function_ as Invoke;
  function_.before(() => undefined);
  expect(await invoke("a", "c")).toEqual([1, ["a", "c", "options"]]);
  function_.before(() => undefined);
  expect(function_.handler((async () => "other") as never)).toBe(function_);
  expect(await invoke("b", "c")).toEqual([2, "other"]);
});
