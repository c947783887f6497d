// Messages that `ctx.rateLimit` refuses, in container workers and Lambda functions together: they wait for the window, and use no attempt.
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { buildServer, createTenantConfig, defineFeature, type PipelineContext } from "keelson";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { type BothHosts, startBothHosts } from "./both-hosts.ts";

const refused = new Map<string, number>();
let done: string[] = [];

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
  const send = r.job("text.send", { input, handler: take });
  const count = r.job("text.count", { input, handler: take, order: ({ id }) => id });
  r.write("text.add", {
    handler: async (ctx, given) => {
      const { kind, ids } = given as { kind: string; ids: readonly string[] };
      for (const id of ids) {
        if (kind === "event") await ctx.publish(added, { id });
        else if (kind === "job") await ctx.enqueue(send, { id });
        else await ctx.enqueue(count, { id });
      }
    },
  });
});

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
});

const ids = ["a", "b", "c", "d"];

test.each([
  ["event", "keelson-events"],
  ["job", "keelson-jobs"],
  ["ordered job", "keelson-jobs.fifo"],
])(
  "%ss that are refused more often than their queue has receives run once, at their first attempt",
  async (kind, queueName) => {
    const { app, sqs, lines } = hosts;
    await app.settled(); // makes the queues
    const QueueUrl = await hosts.queueUrl(queueName);
    const read = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["RedrivePolicy"] });
    const { RedrivePolicy: policy = "" } = (await sqs.send(read)).Attributes ?? {};
    const RedrivePolicy = JSON.stringify({ ...JSON.parse(policy), maxReceiveCount: 2 });
    await sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { RedrivePolicy } }));
    await app.call("texts.text.add", { kind, ids }, { as: { id: "ann", tenantId: "acme" } });
    await hosts.startContainer();
    hosts.startFunction(queueName);

    const leastRefused = () => Math.min(...ids.map((id) => refused.get(id) ?? 0));
    await expect.poll(leastRefused, { timeout: 120_000, interval: 50 }).toBeGreaterThan(2);
    expect(done).toEqual([]);
    const row = { key: "texts:config:texts-per-second", tenantId: "acme", value: 100 };
    await app.rows.put({ scope: "tenant", ...row });
    await expect.poll(() => done.length, { timeout: 120_000, interval: 50 }).toBe(ids.length);
    expect(done.toSorted()).toEqual(ids);
    for (const lost of ["retry", "dead_lettered", "send_again_failed", "order_lost"])
      expect(lines(`queue.${lost}`)).toEqual([]);
  },
);
