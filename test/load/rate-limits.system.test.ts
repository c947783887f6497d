import { join } from "node:path";
import { type Item, parseItem, parseList } from "structured-headers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const number = 40;
const windows = 3;
const mostRequests = 6_000;
const fixture = join(import.meta.dirname, "../fixtures/limited.ts");
let app: TestApp;
let containers: readonly StartedProcess[] = [];

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
  const env = { ...app.env, NODE_ENV: "production", PORT: "0" };
  const start = () => startProcess(process.execPath, [fixture], env);
  containers = await Promise.all([start(), start()]);
});
afterAll(async () => {
  for (const container of containers) signalGroup(container, "SIGKILL");
  await Promise.all(containers.map(({ exited }) => exited));
  await app.close();
});

interface Seen {
  readonly status: number;
  /** Seconds in which it was sent and answered. */
  readonly seconds: readonly [sent: number, answered: number];
  readonly headers: Headers;
}

/** Asks both containers as fast as they answer, for some windows of a second, until enough were refused. */
async function load(): Promise<readonly Seen[]> {
  const seen: Seen[] = [];
  const isEnough = () =>
    [200, 429].every((one) => seen.filter(({ status }) => status === one).length > number);
  const secondOf = () => Math.floor(Date.now() / 1_000);
  const first = secondOf();
  const client = async (index: number) => {
    const { port } = containers[index % containers.length] as StartedProcess; // safe: the index is in range
    while ((secondOf() < first + windows || !isEnough()) && seen.length < mostRequests) {
      const sent = secondOf();
      const { status, headers, body } = await fetch(`http://127.0.0.1:${port}/notes`);
      await body?.cancel();
      seen.push({ status, headers, seconds: [sent, secondOf()] });
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, index) => client(index)));
  return seen;
}

test("two containers under load admit at most the number in each window, and every refusal says when to return", async () => {
  const seen = await load();
  const admitted = seen.filter(({ status }) => status === 200);
  const refused = seen.filter(({ status }) => status === 429);
  expect(admitted.length + refused.length).toBe(seen.length);
  // A request that was sent and answered in the same second was counted in its window.
  const certain = admitted.filter(({ seconds: [sent, answered] }) => sent === answered);
  const counts = [...Map.groupBy(certain, ({ seconds: [sent] }) => sent).values()];
  expect(Math.max(...counts.map(({ length }) => length))).toBeLessThanOrEqual(number);
  const seconds = seen.flatMap((one) => one.seconds);
  const windows = Math.max(...seconds) - Math.min(...seconds) + 1;
  expect(admitted.length).toBeLessThanOrEqual(number * windows);
  expect(admitted.length).toBeGreaterThan(number);
  expect(refused.length).toBeGreaterThan(number);

  const parsed = ([name, parameters]: Item) => [name, Object.fromEntries(parameters)];
  const listOf = (headers: Headers, name: string) =>
    parseList(headers.get(name) ?? "").map((member) => parsed(member as Item)); // safe: no member is a list
  for (const { status, headers } of seen) {
    expect(listOf(headers, "ratelimit-policy")).toEqual([["ip-second", { q: number, w: 1 }]]);
    const r = status === 429 ? 0 : expect.any(Number);
    expect(listOf(headers, "ratelimit")).toEqual([["ip-second", { r, t: 1 }]]);
    const after = headers.get("retry-after");
    expect(after && parseItem(after)[0]).toBe(status === 429 ? 1 : null);
  }
});
