import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { startProcess } from "../support/process.ts";
import { lostOf } from "./clients.ts";
import { drain, nodeOptions } from "./drain.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
});
afterAll(() => app.close());

const lingerMs = 6_000; // in which the balancer notices, on a busy machine too
const fixture = join(import.meta.dirname, "../fixtures/load.ts");
const start = () =>
  startProcess(process.execPath, [...nodeOptions, fixture], {
    ...app.env,
    NODE_ENV: "production",
    SHUTDOWN: JSON.stringify({ lingerMs }),
  });

test("Behind a balancer that checks readiness, SIGTERM under load loses no request", async () => {
  const { tally, code } = await drain({ start, balanced: true, requests: 3_000, limitMs: 60_000 });
  expect(tally).toEqual({
    sent: tally.sent,
    got: tally.sent,
    lost: {},
    refused: 0,
    again: 0,
    slowestMs: expect.any(Number),
  });
  expect(tally.sent).toBeGreaterThanOrEqual(3_000);
  expect(code).toBe(0);
});

test("Without a balancer, no request that the process received is lost, and later ones are refused", async () => {
  const { tally, lostByProcess, code } = await drain({
    start,
    balanced: false,
    requests: 3_000,
    limitMs: 60_000,
  });
  expect(lostByProcess).toBe(0);
  expect(tally.got).toBe(tally.sent - lostOf(tally));
  expect(tally.refused).toBeGreaterThanOrEqual(1);
  expect(code).toBe(0);
});
