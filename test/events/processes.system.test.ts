import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { things } from "../fixtures/events.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const secret = "a secret that all processes of this test share";
const fixture = join(import.meta.dirname, "../fixtures/events.ts");

async function start(
  app: TestApp,
  started: StartedProcess[],
  pauseMs = 0,
): Promise<StartedProcess> {
  const env = {
    ...app.env,
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    PORT: "0",
    KEELSON_AUTH_SECRET: secret,
    PAUSE_MS: String(pauseMs),
  };
  const one = await startProcess(process.execPath, [fixture], env);
  started.push(one);
  return one;
}

async function send({ port }: StartedProcess, method: string, name: string, tenantId = "acme") {
  const token = await signToken({ secret, tenantId, userId: "ann", roles: [] }, systemClock);
  const response = await fetch(`http://127.0.0.1:${port}/things/${name}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "idempotency-key": name },
  });
  return (await response.json()) as Record<string, unknown>;
}

const said = ({ logs }: StartedProcess, msg: string) => logs.filter((line) => line["msg"] === msg);

describe("several processes on the same queues", () => {
  let app: TestApp;
  const started: StartedProcess[] = [];
  beforeAll(async () => {
    app = await startTestApp(buildServer({ features: [things] })); // makes the tables
  });
  afterAll(async () => {
    for (const one of started) {
      signalGroup(one, "SIGKILL");
      await one.exited;
    }
    await app.close();
  });

  test("share the work: every event is consumed once and every job runs once", async () => {
    const processes = [
      await start(app, started),
      await start(app, started),
      await start(app, started),
    ];
    const names = Array.from({ length: 30 }, (_, index) => `thing-${index}`);
    await Promise.all(
      names.map((name, index) => send(processes[index % 3] as StartedProcess, "POST", name)),
    );
    for (const name of names) {
      await expect
        .poll(() => send(processes[0] as StartedProcess, "GET", name))
        .toEqual({ made: 1, consumed: 1, worked: 1 });
    }
    for (const one of processes) signalGroup(one, "SIGTERM");
    const exits = await Promise.all(processes.map(({ exited }) => exited));
    expect(exits).toEqual(processes.map(() => ({ code: 0, signal: null })));
    const began = processes.flatMap((one) => said(one, "work.began").map((line) => line["name"]));
    expect(began.sort()).toEqual([...names].sort());
  });

  test("a job whose process is killed halfway is taken over by another process after its lease", async () => {
    const doomed = await start(app, started, 600_000);
    await send(doomed, "POST", "killed");
    await expect.poll(() => said(doomed, "work.began").length).toBe(1);
    signalGroup(doomed, "SIGKILL");
    await doomed.exited;
    const other = await start(app, started);
    await expect
      .poll(() => send(other, "GET", "killed"), { timeout: 150_000, interval: 500 })
      .toEqual({ made: 1, consumed: 1, worked: 1 });
    signalGroup(other, "SIGTERM");
    expect(await other.exited).toEqual({ code: 0, signal: null });
  });
});
