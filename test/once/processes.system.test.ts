import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const secret = "a secret that all processes of this test share";
const fixture = join(import.meta.dirname, "../fixtures/once.ts");
let app: TestApp;
const started: StartedProcess[] = [];

beforeAll(async () => {
  const effects = defineFeature("effects", (r) => {
    r.table("effects", { partitionKey: "pk", tenant: false });
  });
  app = await startTestApp(buildServer({ features: [effects] })); // makes the tables
});
afterAll(async () => {
  for (const one of started) {
    signalGroup(one, "SIGKILL");
    await one.exited;
  }
  await app.close();
});

async function start(pauseMs = 0): Promise<StartedProcess> {
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

async function send({ port }: StartedProcess, method: string, name: string) {
  const token = await signToken(
    { secret, tenantId: "acme", userId: "ann", roles: [] },
    systemClock,
  );
  const response = await fetch(`http://127.0.0.1:${port}/effects/${name}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "idempotency-key": name },
  });
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    replayed,
  };
}

const began = ({ logs }: StartedProcess, name: string) =>
  expect
    .poll(() => logs.some((line) => line["msg"] === "effect.began" && line["name"] === name), {
      timeout: 30_000,
    })
    .toBe(true);

test("25 concurrent duplicates in each of two processes: one effect, and fifty equal answers", async () => {
  const [first, second] = [await start(), await start()];
  for (let round = 0; round < 5; round += 1) {
    const name = `duplicates-${round}`;
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => [
        send(first, "POST", name),
        send(second, "POST", name),
      ]).flat(),
    );
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 200, body: { name } });
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect((await send(first, "GET", name)).body).toEqual({ amount: 1 });
  }
});

describe.concurrent("after the lease of 30 s and 2 s of clock skew,", () => {
  test("the duplicate of a call takes over when its process is killed mid-handler", async () => {
    const [doomed, other] = [await start(600_000), await start()];
    const lost = send(doomed, "POST", "killed").catch(() => "no answer");
    await began(doomed, "killed");
    const answer = send(other, "POST", "killed");
    signalGroup(doomed, "SIGKILL");
    await doomed.exited;
    expect(await lost).toBe("no answer");
    expect(await answer).toMatchObject({
      status: 200,
      body: { by: other.child.pid },
      replayed: false,
    });
    expect((await send(other, "GET", "killed")).body).toEqual({ amount: 1 });
  });

  test("a process that was paused cannot commit over a duplicate, and its caller gets the duplicate's answer", async () => {
    const [frozen, other] = [await start(20_000), await start()]; // over before it goes on
    const late = send(frozen, "POST", "frozen");
    await began(frozen, "frozen");
    process.kill(frozen.child.pid as number, "SIGSTOP");
    const answer = await send(other, "POST", "frozen");
    expect(answer).toMatchObject({ status: 200, body: { by: other.child.pid }, replayed: false });
    process.kill(frozen.child.pid as number, "SIGCONT");
    expect(await late).toMatchObject({
      status: 200,
      body: { by: other.child.pid },
      replayed: true,
    });
    expect((await send(other, "GET", "frozen")).body).toEqual({ amount: 1 });
    expect((await send(frozen, "POST", "frozen")).body).toEqual(answer.body);
  });
});
