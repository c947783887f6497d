import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const secret = "a secret that both processes of this test share";
const ttlMs = 300;
let stack: EmbeddedStack;
let processes: StartedProcess[] = [];

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const fixture = join(import.meta.dirname, "../fixtures/configured.ts");
  const env = {
    ...stack.env,
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    PORT: "0",
    KEELSON_AUTH_SECRET: secret,
    TTL_MS: String(ttlMs),
  };
  // One after the other: the first makes the tables.
  processes = [await startProcess(process.execPath, [fixture], env)];
  processes.push(await startProcess(process.execPath, [fixture], env));
});

afterAll(async () => {
  for (const process_ of processes) {
    signalGroup(process_, "SIGKILL");
    await process_.exited;
  }
  await stack.close();
});

async function send(index: number, method: string, path: string, body?: object) {
  const token = await signToken(
    { secret, tenantId: "acme", userId: "ann", roles: [] },
    systemClock,
  );
  const response = await fetch(`http://127.0.0.1:${processes[index]?.port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test("a write in one process is visible to its own next read, and to another process that has cached the old value", async () => {
  for (const index of [0, 1])
    expect((await send(index, "GET", "/limit")).body).toEqual({ size: 10, secretLength: 0 });

  for (const [writer, reader, size] of [
    [0, 1, 20],
    [1, 0, 30],
    [0, 1, 40],
  ] as const) {
    expect((await send(writer, "PUT", "/config/limits:config:size", { value: size })).status).toBe(
      200,
    );
    expect((await send(writer, "GET", "/limit")).body["size"]).toBe(size);
    await expect
      .poll(async () => (await send(reader, "GET", "/limit")).body["size"], { interval: ttlMs / 4 })
      .toBe(size);
    // And it stays seen: no read goes back.
    for (let read = 0; read < 20; read++)
      expect((await send(reader, "GET", "/limit")).body["size"]).toBe(size);
  }
});

test("a secret sealed by one process can be opened by another that shares the development secret", async () => {
  expect((await send(0, "PUT", "/config/limits:config:secret", { value: "hunter2" })).status).toBe(
    200,
  );
  await expect
    .poll(async () => (await send(1, "GET", "/limit")).body["secretLength"], {
      interval: ttlMs / 4,
    })
    .toBe("hunter2".length);
  for (const { logs, text } of processes)
    expect(JSON.stringify([logs, text()])).not.toContain("hunter2");
});
