// own process: it fakes timers
import { expect, test, vi } from "vitest";
import { NotFoundError } from "../../base/errors/errors.ts";
import { anonymous } from "../../base/identity/access.ts";
import { createServerLogger } from "../../base/log/server-logger.ts";
import type { ReadyCheck } from "../registry/declared-server.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer } from "../server/server.ts";
import { healthHandlers } from "./health.ts";

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
  const logs: Record<string, unknown>[] = [];
  const log = createServerLogger({
    environment: "test",
    env: {},
    write: (line) => void logs.push(JSON.parse(line)),
  });
  const ask = async (handler = ready) =>
    (await handler?.run({ user: anonymous, log } as never, {})) as {
      body: unknown;
      status: number;
    };
  return { logs, ask, live: () => ask(live), runtime, at: (ms: number) => (now = ms) };
}

test("a service without checks is ready, and answers 503 once it drains", async () => {
  const { ask, runtime, live } = health({});

  expect(await ask()).toMatchObject({
    status: 200,
    body: { status: "ready", state: "running", checks: {} },
  });
  runtime.lifecycle.drain();
  expect(await ask()).toMatchObject({
    status: 503,
    body: { status: "unavailable", state: "draining" },
  });
  expect(await live()).toEqual({ status: "live" });
});

test("a check that returns false, throws or rejects fails and is named", async () => {
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
    body: {
      checks: { fine: "ok", sure: "ok", no: "failing", throws: "failing", rejects: "failing" },
    },
  });
});

test("a check that hangs fails after its timeout", async () => {
  vi.useFakeTimers();
  try {
    const asked = health({ hangs: () => new Promise(() => {}) }).ask();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await asked).toMatchObject({ status: 503, body: { checks: { hangs: "failing" } } });
  } finally {
    vi.useRealTimers();
  }
});

test("results are kept for a second, so that not every poll runs the checks", async () => {
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

test("a failing check is logged once per change: when it fails, fails differently, and recovers", async () => {
  let check: ReadyCheck = () => true;
  const { ask, at, logs } = health({ db: () => check() });
  let now = 0;
  const poll = async (next: ReadyCheck, times = 2) => {
    check = next;
    for (let count = 0; count < times; count += 1) {
      now += 5_000;
      at(now);
      await ask();
    }
    return logs.splice(0);
  };
  const cause = new Error("refused");
  let port = 40_000;

  expect(await poll(() => true)).toEqual([]);
  const failed = await poll(() => {
    throw new Error(`no connection from port ${port++}`, { cause });
  }, 3);
  expect(failed).toMatchObject([
    {
      level: "error",
      msg: "health.check_failed",
      check: "db",
      error: "internal_error",
      message: "no connection from port 40000",
      stack: expect.stringContaining("health.test.ts"),
      causes: [{ message: "refused" }],
    },
  ]);
  expect(failed).toHaveLength(1);
  expect(await poll(() => Promise.reject(new NotFoundError("table", "files")))).toMatchObject([
    { level: "warn", msg: "health.check_failed", check: "db", error: "not_found" },
  ]);
  expect(await poll(() => false)).toMatchObject([
    { level: "error", check: "db", message: "it returned false" },
  ]);
  expect(await poll(() => undefined)).toMatchObject([
    { level: "info", msg: "health.check_recovered", check: "db" },
  ]);
  expect(await poll(() => false)).toHaveLength(1);
});

test("draining answers 503 at once, runs no check, and neither awaits nor logs one that hangs", async () => {
  vi.useFakeTimers(); // which nobody moves on
  try {
    const check = vi.fn(() => new Promise(() => {}));
    const { ask, at, runtime, logs } = health({ check });
    const unavailable = {
      status: 503,
      body: { status: "unavailable", state: "draining", checks: {} },
    };
    const asked = ask();
    runtime.lifecycle.drain();

    expect(await asked).toMatchObject(unavailable);
    at(10_000);
    expect(await ask()).toMatchObject(unavailable);
    expect(check).toHaveBeenCalledTimes(1);
    expect(logs).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

test("answers 503 while starting, and runs no check", async () => {
  const check = vi.fn(() => true);
  const { ask, runtime } = health({ check });
  runtime.lifecycle.enter("starting");

  expect(await ask()).toMatchObject({ status: 503, body: { state: "starting", checks: {} } });
  expect(check).not.toHaveBeenCalled();
});
