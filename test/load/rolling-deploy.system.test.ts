import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type StartedProcess, startProcess } from "../support/process.ts";
import { startBalancer } from "./balancer.ts";
import { startLoad } from "./clients.ts";

const secret = "a secret that all instances of this test share";
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
    one.child.kill("SIGKILL");
    await one.exited;
  }
  await app.close();
});

async function start(): Promise<StartedProcess> {
  const SHUTDOWN = JSON.stringify({ lingerMs: 8_000 }); // in which the balancer notices, on a busy machine too
  const env = {
    ...app.env,
    NODE_ENV: "production",
    PORT: "0",
    KEELSON_AUTH_SECRET: secret,
    SHUTDOWN,
  };
  const one = await startProcess(process.execPath, [fixture], env);
  started.push(one);
  return one;
}

test("A rolling deployment of two instances under load loses no request, and each write happens once", async () => {
  const balancer = startBalancer();
  const instances = [await start(), await start()];
  for (const { port } of instances) {
    balancer.add(port);
    await balancer.ready(port);
  }
  const token = await signToken(
    { secret, tenantId: "acme", userId: "ann", roles: [] },
    systemClock,
  );
  const headers = { authorization: `Bearer ${token}` };
  // Each write is sent twice, by two clients at about the same time, mostly to two instances.
  const nameOf = (number: number) => `write-${Math.floor(number / 2)}`;
  const authors = new Map<string, string>();
  const load = startLoad({
    clients: 12,
    next: balancer.next,
    request: (number) => ({
      method: "POST",
      path: `/effects/${nameOf(number)}`,
      headers: { ...headers, "idempotency-key": nameOf(number) },
      check: (body) => {
        const author = authors.get(nameOf(number));
        authors.set(nameOf(number), body);
        return author === undefined || author === body
          ? undefined
          : "another answer to the same write";
      },
    }),
  });
  for (const old of instances) {
    const successor = await start();
    balancer.add(successor.port);
    await balancer.ready(successor.port);
    const sent = load.tally.sent;
    await expect.poll(() => load.tally.sent).toBeGreaterThan(sent + 100);
    old.child.kill("SIGTERM");
    expect(await old.exited).toEqual({ code: 0, signal: null });
    balancer.remove(old.port);
  }
  await load.stop();
  balancer.stop();
  const { sent, got, lost, refused, again } = load.tally;
  // A draining instance refuses a duplicate that waits (409, Retry-After); the client retries it.
  expect({ got: got + again, lost, refused }).toEqual({ got: sent, lost: {}, refused: 0 });
  expect(got + again).toBeGreaterThan(200); // twice the 100 that were waited for
  const [reader] = started.slice(-1) as [StartedProcess]; // safe: four were started
  const amounts = await Promise.all(
    [...authors.keys()].map(async (name) => {
      const response = await fetch(`http://127.0.0.1:${reader.port}/effects/${name}`, { headers });
      return (await response.json()) as unknown;
    }),
  );
  expect(amounts).toEqual(amounts.map(() => ({ amount: 1 })));
});
