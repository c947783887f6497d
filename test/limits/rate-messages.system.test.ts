// Messages that `ctx.rateLimit` refuses, in container workers and Lambda functions together: they wait for the window, and use no attempt.
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import {
  buildServer,
  createTenantConfig,
  defineFeature,
  PermanentError,
  type PipelineContext,
} from "keelson";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { type BothHosts, startBothHosts } from "./both-hosts.ts";

const refused = new Map<string, number>();
let done: string[] = [];
let failures: string[] = [];

const texts = defineFeature("texts", (r) => {
  const { textsPerSecond } = r.config({
    keys: {
      textsPerSecond: createTenantConfig("number", { default: 0, bounds: { min: 0, max: 100 } }),
    },
  });
  const sms = r.rateLimit("sms", { per: "tenant", requests: textsPerSecond, window: "second" });
  const input = z.object({ id: z.string() });
  const take = async (
    { rateLimit }: Pick<PipelineContext, "rateLimit">,
    { id }: { readonly id: string },
  ) => {
    if (!(await rateLimit.tryTake(sms)).ok) countRefusal(id);
    await rateLimit.take(sms);
    done.push(id);
  };
  const added = r.event("text.added", input);
  r.on(added, {
    name: "announce",
    handler: (ctx, { payload }) => take(ctx, payload),
  });
  const noted = r.event("text.noted", input);
  r.on(noted, { name: "announce-note", handler: (ctx, { payload }) => take(ctx, payload) });
  r.on(noted, { name: "fail", handler: () => fail(new Error("no paper")) });
  r.on(noted, { name: "refuse", handler: () => fail(new PermanentError("no note")) });
  const send = r.job("text.send", { input, handler: take });
  const count = r.job("text.count", { input, handler: take, order: ({ id }) => id });
  r.write("text.add", {
    handler: async (ctx, given) => {
      const { kind, ids } = given as { kind: string; ids: readonly string[] };
      for (const id of ids) {
        if (kind === "note") await ctx.publish(noted, { id });
        else if (kind === "event") await ctx.publish(added, { id });
        else if (kind === "job") await ctx.enqueue(send, { id });
        else await ctx.enqueue(count, { id });
      }
    },
  });
});

function fail(error: Error): never {
  failures.push(error.message);
  throw error;
}

function countRefusal(id: string): void {
  refused.set(id, (refused.get(id) ?? 0) + 1);
}

let hosts: BothHosts;
beforeEach(async () => {
  hosts = await startBothHosts(() => buildServer({ features: [texts], cache: { ttlMs: 100 } }));
});
afterEach(async () => {
  await hosts.close();
  refused.clear();
  done = [];
  failures = [];
});

async function allowTwoReceives(queueName: string): Promise<void> {
  const QueueUrl = await hosts.queueUrl(queueName);
  const read = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["RedrivePolicy"] });
  const { RedrivePolicy: policy = "" } = (await hosts.sqs.send(read)).Attributes ?? {};
  const RedrivePolicy = JSON.stringify({ ...JSON.parse(policy), maxReceiveCount: 2 });
  await hosts.sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { RedrivePolicy } }));
}

/** Lets all texts be sent from now on. */
async function allow(): Promise<void> {
  const row = { key: "texts:config:texts-per-second", tenantId: "acme", value: 100 };
  await hosts.app.rows.put({ scope: "tenant", ...row });
}

const ids = ["a", "b", "c", "d"];

test.each([
  ["event", "keelson-events"],
  ["job", "keelson-jobs"],
  ["ordered job", "keelson-jobs.fifo"],
])(
  "%ss that are refused more often than their queue has receives run once, at their first attempt",
  async (kind, queueName) => {
    const { app, lines } = hosts;
    await app.settled(); // makes the queues
    await allowTwoReceives(queueName);
    await app.call("texts.text.add", { kind, ids }, { as: { id: "ann", tenantId: "acme" } });
    await hosts.startContainer();
    hosts.startFunction(queueName);

    const leastRefused = () => Math.min(...ids.map((id) => refused.get(id) ?? 0));
    await expect.poll(leastRefused, { timeout: 120_000, interval: 50 }).toBeGreaterThan(2);
    expect(done).toEqual([]);
    await allow();
    await expect.poll(() => done.length, { timeout: 120_000, interval: 50 }).toBe(ids.length);
    expect(done.toSorted()).toEqual(ids);
    for (const lost of ["retry", "dead_lettered", "send_again_failed", "order_lost"])
      expect(lines(`queue.${lost}`)).toEqual([]);
  },
);

test("on both hosts, an event waits while its other consumers fail, and is then a dead letter", async () => {
  const { app, lines } = hosts;
  await app.settled(); // makes the queues
  await allowTwoReceives("keelson-events");
  await app.call("texts.text.add", { kind: "note", ids }, { as: { id: "ann", tenantId: "acme" } });
  await hosts.startContainer();
  hosts.startFunction("keelson-events");

  const leastRefused = () => Math.min(...ids.map((id) => refused.get(id) ?? 0));
  await expect.poll(leastRefused, { timeout: 90_000, interval: 50 }).toBeGreaterThan(4);
  expect(done).toEqual([]);
  expect(lines("queue.dead_lettered")).toEqual([]);
  await allow();
  const dead = () => lines("queue.dead_lettered").length;
  await expect.poll(dead, { timeout: 90_000, interval: 50 }).toBe(ids.length);
  expect(done.toSorted()).toEqual(ids);
  // A retry also runs the consumer that has failed permanently.
  expect(failures.toSorted()).toEqual([...Array(8).fill("no note"), ...Array(8).fill("no paper")]);
});
