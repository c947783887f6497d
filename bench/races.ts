import { access, buildServer, defineFeature } from "../src/index.ts";
import { type RaceApp, raceEverywhere, startTestApp } from "../src/tools/testing/index.ts";
import { type Result, result } from "./measure.ts";

const counters = defineFeature("counters", (r) => {
  const table = r.table("counters", { partitionKey: "pk", tenant: true });
  r.write("counter.add", {
    route: "POST /counters",
    access: access.authenticated,
    handler: async (ctx) => {
      const Update = {
        TableName: table.name,
        Key: table.key(ctx, "a"),
        UpdateExpression: "ADD amount :one",
        ExpressionAttributeValues: { ":one": 1 },
      };
      return ctx.commit([{ Update }], {});
    },
  });
});
const server = buildServer({ features: [counters], log: { requests: false } });
const ann = { id: "ann", tenantId: "acme" };

/** The 90 orders of three writes with a commit, six calls together, and random ones, beside a test app for each order. */
export async function raceResults(): Promise<Result[]> {
  const add = (key: string) => (app: RaceApp) =>
    app.fetch("/counters", { body: {}, as: app.as(), headers: { "idempotency-key": key } });
  const requests = [add("a"), add("b"), add("c")];
  const race = (walks: number) =>
    raceEverywhere(server, { requests, walks, preemptions: 4, check: () => undefined });
  await race(10);
  const ours = await perSecond(async () => (await race(910)).orders);
  const peer = await perSecond(async () => {
    const times = 10;
    for (let time = 0; time < times; time += 1) await inOwnApp();
    return times;
  });
  return [result({ id: "race-orders", ours, peer, unit: "per s" })];
}

async function inOwnApp(): Promise<void> {
  const app = await startTestApp(server);
  const send = (key: string) =>
    app.fetch("/counters", { body: {}, as: ann, headers: { "idempotency-key": key } });
  await Promise.all(["a", "b", "c"].map(send));
  await app.close();
}

async function perSecond(work: () => Promise<number>): Promise<number> {
  const began = performance.now();
  const count = await work();
  return Math.round((count / (performance.now() - began)) * 1_000);
}
