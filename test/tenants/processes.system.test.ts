import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { lastOldAnswerMs } from "../support/last-old-answer.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const secret = "a secret that all processes of this test share";
const fixture = join(import.meta.dirname, "../fixtures/tenants.ts");
const server = buildServer({ features: [], tenants: true });
let app: TestApp;
const started: StartedProcess[] = [];

beforeAll(async () => {
  app = await startTestApp(server); // makes the tables
  await server.tenants.create({ id: "acme" });
  const env = {
    ...app.env,
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    PORT: "0",
    KEELSON_AUTH_SECRET: secret,
  };
  const start = () => startProcess(process.execPath, [fixture], env);
  started.push(...(await Promise.all([start(), start()])));
});
afterAll(async () => {
  for (const one of started) {
    signalGroup(one, "SIGKILL");
    await one.exited;
  }
  await app.close();
});

async function statusOf(
  { port }: StartedProcess,
  path = "/caller",
  caller: { tenantId: string; roles: readonly string[] } = { tenantId: "acme", roles: [] },
) {
  const token = await signToken({ secret, userId: "ann", ...caller }, systemClock);
  const method = path === "/caller" ? "GET" : "POST";
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`http://127.0.0.1:${port}${path}`, { method, headers })).status;
}

const operator = { tenantId: "ops", roles: ["systemAdmin"] };

test("a tenant that one process suspends or resumes is so in another within five seconds", async () => {
  const [one, other] = started as [StartedProcess, StartedProcess]; // safe: two have started
  for (const [action, before, after] of [
    ["suspend", 200, 403],
    ["resume", 403, 200],
  ] as const) {
    expect([await statusOf(one), await statusOf(other)]).toEqual([before, before]);
    expect(await statusOf(one, `/acme/${action}`, operator)).toBe(200);
    const changedMs = performance.now();
    expect(await statusOf(one)).toBe(after);
    expect(await lastOldAnswerMs(changedMs, () => statusOf(other), after)).toBeLessThan(5_000);
  }
});
