import { expect, test, vi } from "vitest";
import { anonymous } from "../identity/user.ts";
import { healthHandlers } from "./health.ts";
import { createRuntime } from "./runtime.ts";
import { buildServer, type ReadyCheck } from "./server.ts";

function health(checks: Record<string, ReadyCheck>) {
  const server = buildServer({ features: [] });
  for (const [name, check] of Object.entries(checks)) server.onReadyCheck(name, check);
  let now = 0;
  const runtime = createRuntime(server, {
    variables: {},
    clock: { now: () => now },
    openAdapters: () => Promise.reject(new Error("unused")),
  });
  const [ready, live] = healthHandlers(runtime);
  const ask = async (handler = ready) =>
    (await handler?.run({ user: anonymous } as never, {})) as { body: unknown; status: number };
  return { ask, live: () => ask(live), runtime, at: (ms: number) => (now = ms) };
}

test("a service without checks is ready, and 503 once it drains", async () => {
  const { ask, runtime, live } = health({});

  expect(await ask()).toMatchObject({ status: 200, body: { status: "ready", state: "running", checks: {} } });
  runtime.lifecycle.drain();
  expect(await ask()).toMatchObject({ status: 503, body: { status: "unavailable", state: "draining" } });
  expect(await live()).toEqual({ status: "live" });
});

test("a check that says false, throws or rejects fails, and is named", async () => {
  const { ask } = health({
    fine: () => undefined,
    sure: async () => true,
    no: () => false,
    throws: () => {
      throw new Error("x");
    },
    rejects: () => Promise.reject(new Error("x")),
  });

  expect(await ask()).toMatchObject({
    status: 503,
    body: { checks: { fine: "ok", sure: "ok", no: "failing", throws: "failing", rejects: "failing" } },
  });
});

test("a check that hangs fails after its time", async () => {
  vi.useFakeTimers();
  try {
    const asked = health({ hangs: () => new Promise(() => {}) }).ask();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await asked).toMatchObject({ status: 503, body: { checks: { hangs: "failing" } } });
  } finally {
    vi.useRealTimers();
  }
});

test("results are kept for a second, so that checks are not asked by every poll", async () => {
  const check = vi.fn(() => true);
  const { ask, at } = health({ check });
  at(10_000);
  await ask();
  at(11_000);
  await ask();
  expect(check).toHaveBeenCalledTimes(1);
  at(11_001);
  await ask();
  expect(check).toHaveBeenCalledTimes(2);
  at(5_000);
  await ask();
  expect(check).toHaveBeenCalledTimes(3);
});
