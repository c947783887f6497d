import { expect, test } from "vitest";
import { recordedMetrics } from "../../test/support/recorded-metrics.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer } from "../server/server.ts";
import { beginLife } from "./process-life.ts";

function begun(drainMs = 0) {
  const server = buildServer({ features: [] });
  const measured = recordedMetrics();
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: {},
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: () => Promise.reject(new Error("unused")),
    measuring: { metrics: measured.metrics, observer: undefined, missing: undefined },
  });
  return { measured, life: beginLife(runtime, { lingerMs: 0, drainMs, totalMs: 10_000 }), runtime, logs };
}

test("A process that has opened nothing yet has nothing to wait for", async () => {
  const { life, runtime, logs, measured } = begun();
  expect([life.isAlive(), runtime.lifecycle.state]).toEqual([true, "running"]);
  life.tell({ type: "terminate" });
  expect(life.isAlive()).toBe(false);
  expect(await life.ended).toBe(1); // there was no time at all for what was never there
  expect(runtime.lifecycle.draining.aborted).toBe(true);
  expect(logs.at(-1)).toMatchObject({ msg: "shutdown.completed", signals: 1 });
  expect(measured.sums()).toEqual({ "keelson.drains lossy": 1 });
});

test("Where a process is shows in its readiness", () => {
  const { life, runtime } = begun();
  life.tell({ type: "started" });
  expect(runtime.lifecycle.state).toBe("running");
  life.tell({ type: "fault" });
  expect(["draining", "in-flight-drain", "workers-stopped"]).toContain(runtime.lifecycle.state);
});

test("What runs without a request is waited for, as messages are", async () => {
  const { life, runtime, logs, measured } = begun(5_000);
  const running = Promise.withResolvers<void>();
  runtime.inFlight.set("run 1", { work: running.promise, handler: "keelson.server.run", ids: { reason: "a task" } });
  life.tell({ type: "started" });
  life.tell({ type: "terminate" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(runtime.lifecycle.state).toBe("workers-stopped");
  running.reject(new Error("it failed"));
  expect(await life.ended).toBe(0);
  expect(logs.at(-1)).toMatchObject({ msg: "shutdown.completed", clean: true });
  expect(measured.sums()).toEqual({ "keelson.drains clean": 1 });
});
