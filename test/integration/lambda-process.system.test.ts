import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

const fixture = join(import.meta.dirname, "../fixtures/lambda-process.ts");
// What the functions publish needs a bus and queues: an app of the same kind makes them.
const making = defineFeature(
  "making",
  (r) => void r.event("leaf.fell" as never, z.object({}) as never),
);

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [making] }));
  await app.settled();
});
afterAll(() => app.close());

/** Starts a process of Lambda functions. */
function start(mode: string, env: Record<string, string | undefined> = {}) {
  const queues = { KEELSON_EVENT_QUEUE: "keelson-events", KEELSON_JOB_QUEUE: "keelson-jobs.fifo" };
  const lambda = {
    AWS_LAMBDA_FUNCTION_NAME: "leaves",
    NODE_ENV: "production",
    AWS_REGION: "us-east-1",
  };
  const child = spawn(process.execPath, [fixture, mode], {
    env: { ...process.env, ...queues, ...app.env, ...lambda, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [text, complaints] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const lines = () =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return {
    child,
    said: (msg: string) => lines().filter((line) => line["msg"] === msg),
    complaints: () => complaints,
    ended: once(child, "close").then(([code, signal]) => ({ code, signal })),
  };
}

describe("the lines of an invocation", () => {
  const many = 3_000;

  test("are written by the time of its answer, even if the process is killed at that moment", async () => {
    const { said, ended } = start("freeze", { SIGNAL: "SIGKILL", LINES: String(many) });
    expect(await ended).toEqual({ code: null, signal: "SIGKILL" });
    expect(said("leaf.counted").map(({ n }) => n)).toEqual(
      Array.from({ length: many }, (_, n) => n + 1),
    );
  });

  test("are written even if the process is frozen", async () => {
    const { child, said, ended } = start("freeze", { SIGNAL: "SIGSTOP", LINES: String(many) });
    await expect.poll(() => said("leaf.counted").length).toBe(many);
    child.kill("SIGKILL");
    expect(await ended).toEqual({ code: null, signal: "SIGKILL" });
  });
});

describe("a process that Lambda terminates", () => {
  test("closes the resources of its servers, logs it, and exits with 0", async () => {
    const { child, said, ended } = start("wait");
    await expect.poll(() => said("waiting")).toMatchObject([{ listeners: 1 }]);
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(said("closed").map(({ name }) => name)).toEqual(
      expect.arrayContaining(["pool", "other"]),
    );
    expect(said("shutdown.completed")).toMatchObject([
      { clean: true, exitCode: 0, totalMs: expect.any(Number) },
      { clean: true, exitCode: 0, totalMs: expect.any(Number) },
    ]);
  });

  test("does not wait for a resource that hangs: it exits before Lambda kills it, and a second signal changes nothing", async () => {
    const { child, said, ended } = start("wait", { HANGS: "1" });
    await expect.poll(() => said("waiting").length).toBe(1);
    child.kill("SIGTERM");
    await expect
      .poll(() => said("closed").length, { timeout: 30_000, interval: 1 })
      .toBeGreaterThan(0);
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: 0, signal: null });
    expect(said("shutdown.close_failed")).toMatchObject([{ resource: "hanging" }]);
    const completed = said("shutdown.completed").find(({ clean }) => clean === false);
    expect(completed).toMatchObject({ exitCode: 0 });
    expect(Number(completed?.["totalMs"])).toBeLessThan(10_000); // 250, and what a busy machine adds: it hangs for ever
    expect(
      said("closed")
        .map(({ name }) => name)
        .sort(),
    ).toEqual(["other", "pool"]);
  });

  test("does not handle the signal outside of Lambda", async () => {
    const { child, said, ended } = start("wait", { AWS_LAMBDA_FUNCTION_NAME: undefined });
    await expect.poll(() => said("waiting")).toMatchObject([{ listeners: 0 }]);
    child.kill("SIGTERM");
    expect(await ended).toEqual({ code: null, signal: "SIGTERM" });
  });
});

test("an invocation leaves at most the one shared timer, and no timer keeps the process alive", async () => {
  const { said, ended, complaints } = start("timers", { SSM_PATH: "/nowhere" });
  expect([await ended, complaints()]).toEqual([{ code: 0, signal: null }, ""]); // nobody has ended it
  const invoked = said("invoked");
  expect(invoked.map(({ name }) => name)).toEqual([
    "query",
    "write",
    "repeat",
    "events",
    "jobs",
    "stream",
    "sweep",
  ]);
  expect(invoked.map(({ answer }) => answer)).toMatchObject([
    { statusCode: 200 },
    { statusCode: 204 },
    { statusCode: 204, headers: { "idempotent-replayed": "true" } },
    { batchItemFailures: [] },
    { batchItemFailures: [] },
    { batchItemFailures: [] },
    { dispatched: 0, left: 0 },
  ]);
  // Each ends by itself and then does nothing: the look at what is due, 500 ms later at the most, and the limit of a reading
  // of SSM that is over, which holds no process.
  const inert = ["hosts/lambda-http/execution-mode.ts", "aws/clients/ssm.ts"];
  for (const { left, active } of invoked as { left: string[]; active: string[] }[]) {
    expect(left.filter((place) => !inert.includes(place))).toEqual([]);
    expect(left.filter((place) => place === inert[0]).length).toBeLessThanOrEqual(1);
    expect(active.filter((what) => what === "Timeout").length).toBeLessThanOrEqual(1);
  }
});
