import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { lastOldAnswerMs } from "../support/last-old-answer.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { waitFor } from "../support/wait-for.ts";

const secret = "a secret that all processes of this test share";
const fixture = join(import.meta.dirname, "../fixtures/api-keys.ts");
let app: TestApp;
const started: StartedProcess[] = [];

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] })); // makes the tables
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

async function send({ port }: StartedProcess, method: string, path: string, body?: object) {
  const caller = { secret, tenantId: "acme", userId: "ann", roles: ["admin"] };
  const token = await signToken(caller, systemClock);
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

const statusOf = async ({ port }: StartedProcess, key: string) =>
  (await fetch(`http://127.0.0.1:${port}/caller`, { headers: { "x-api-key": key } })).status;

test("a key of one process is known to another at once, and its revocation within five seconds", async () => {
  const [one, other] = started as [StartedProcess, StartedProcess]; // safe: two have started
  const { body } = await send(one, "POST", "/api-keys", { name: "billing", roles: ["admin"] });
  expect([await statusOf(one, body.key), await statusOf(other, body.key)]).toEqual([200, 200]);

  expect((await send(one, "DELETE", `/api-keys/${body.id}`)).status).toBe(204);
  const revokedMs = performance.now();
  expect(await statusOf(one, body.key)).toBe(401);
  const lastMs = await lastOldAnswerMs(revokedMs, () => statusOf(other, body.key), 401);
  expect(lastMs).toBeLessThan(5_000);
});

test("a secret that one process has rotated ends everywhere with its overlap", async () => {
  const [one, other] = started as [StartedProcess, StartedProcess]; // safe: two have started
  const { body } = await send(one, "POST", "/api-keys", { name: "reports", roles: [] });
  expect(await statusOf(other, body.key)).toBe(200);
  const rotated = await send(one, "POST", `/api-keys/${body.id}/rotate`, { overlapSeconds: 0 });
  expect(await statusOf(one, body.key)).toBe(401);
  expect(await statusOf(other, rotated.body.key)).toBe(200);
  await waitFor(async () => expect(await statusOf(other, body.key)).toBe(401));
});
