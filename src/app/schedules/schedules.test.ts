import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openChecked } from "../../hosts/container/adapters.ts";
import { beginLife } from "../../hosts/container/process-life.ts";
import { startWorkers, type Workers } from "../../hosts/container/workers.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer } from "../server/server.ts";

const hour = 3_600_000;
let runs: string[] = [];
let held: PromiseWithResolvers<void> | undefined;
let aheadMs = 0;
const server = () =>
  buildServer({
    features: [
      defineFeature("reports", (r) => {
        r.schedule("report.make", {
          cron: "0 * * * *",
          handler: async (_ctx, { at }) => {
            runs.push(at.toISOString().slice(14, 16));
            await held?.promise;
          },
        });
      }),
    ],
  });

let app: TestApp;
let runtime: Runtime;
let workers: Workers | undefined;
const logs: Record<string, unknown>[] = [];
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());
beforeEach(() => {
  runs = [];
  held = undefined;
  logs.splice(0);
});
afterEach(async () => {
  held?.resolve();
  workers?.stop();
  await workers?.finished();
  await runtime.close();
});

/**
 * Starts the workers of a process whose clock is so long before a full hour, later than those before. It stands still
 * until they have started, however long that takes.
 */
async function start(beforeMs: number): Promise<Workers> {
  const nextMs = Math.ceil((Date.now() + aheadMs) / hour) * hour;
  const startMs = nextMs + hour - beforeMs;
  let isRunning = false;
  runtime = createRuntime(server(), {
    variables: { ...app.env, LOG_LEVEL: "debug" },
    clock: { now: () => (isRunning ? Date.now() + aheadMs : startMs) },
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: (bound) => openChecked(bound, app.env, "create"),
  });
  workers = await startWorkers(runtime, new Set(["schedules"]));
  aheadMs = startMs - Date.now();
  isRunning = true;
  return workers;
}

test("a container fires a schedule when it is due, until it is stopped", async () => {
  const running = await start(2_000);
  await expect.poll(() => logs.map(({ msg }) => msg)).toEqual(["schedule.completed"]);
  expect(runs).toEqual(["00"]);
  expect(Date.parse(String(logs[0]?.["firesAt"]))).toBeLessThanOrEqual(Date.now() + aheadMs);
  running.stop();
  await running.finished();
});

test("a stopping container names schedules that still run after its timeout", async () => {
  held = Promise.withResolvers();
  const running = await start(1_000); // an hour was missed meanwhile
  await expect.poll(() => runs.length).toBeGreaterThan(0);
  const life = beginLife(runtime, { lingerMs: 0, drainMs: 0, totalMs: 100 });
  life.workers = running;
  life.tell({ type: "started" });
  life.tell({ type: "terminate" });
  expect(await life.ended).toBe(1);
  const cut = [{ handler: "reports.report.make", firesAt: expect.stringMatching(/:00:00\.000Z$/) }];
  expect(logs).toContainEqual(
    expect.objectContaining({ msg: "shutdown.completed", cutOffMessages: cut }),
  );
  held.resolve();
  await running.finished();
  expect(logs).toContainEqual(expect.objectContaining({ msg: "schedule.completed" }));
});
