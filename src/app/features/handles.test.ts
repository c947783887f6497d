import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { BootError } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Projection } from "../projections/projection.ts";
import { buildServer } from "../server/server.ts";
import { defineFeature, type Feature } from "./feature.ts";

const placing = z.object({ id: z.string(), count: z.number().default(1) });

/** What has happened, in no certain order. */
let seen: unknown[] = [];

const declared = (name: string) =>
  defineFeature(name, (r) => ({
    placed: r.event(`${name}-order.placed`, placing, { keep: true }),
    pack: r.job("order.pack", {
      input: placing,
      handler: async (_ctx, payload) => void seen.push(["packed", payload]),
    }),
    mail: r.channel(`${name}-mail`, {
      input: placing,
      send: async (_ctx, message) => void seen.push(["mailed", message]),
    }),
    count: r.metric("order.count", { labels: { plan: ["free", "pro"] } }),
    show: r.query("order.show", {
      route: "GET /orders/:id",
      access: access.tenant,
      input: z.object({ id: z.string() }),
      handler: async (_ctx, { id }) => ({ shown: id }),
    }),
    keep: r.write("order.keep", {
      input: placing,
      handler: async (_ctx, { id }) => ({ kept: id }),
    }),
  }));
const shop = declared("shop");
/** Its handles are those of a feature that the server lacks. */
const strange = declared("strange");

/** What the next write does. */
let work: (ctx: PipelineContext) => unknown = () => undefined;

const stock = defineFeature("stock", (r) => {
  const table = r.table("stock", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const placed: Projection = r.projection("stock.placed", {
    version: 1,
    on: [
      [
        shop.placed,
        async (ctx, { payload: { id, count } }) => [
          {
            Put: {
              TableName: table.name,
              Item: { ...table.key(ctx, await placed.key(ctx, "orders"), id), count },
            },
          },
        ],
      ],
    ],
  });
  r.on(shop.placed, {
    name: "reserve",
    handler: async (_ctx, { payload }) => void seen.push(["reserved", payload]),
  });
  r.hook(shop.keep, {
    before: async (_ctx, { id, count }) => {
      seen.push(["hooked", { id, count }]);
      return { id: `hooked ${id}` };
    },
  });
  const count = r.query("stock.count", {
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      const Key = table.key(ctx, await placed.key(ctx, "orders"), id);
      const { Item } = await ctx.db.send(new GetCommand({ TableName: table.name, Key }));
      return Number(Item?.["count"]);
    },
  });
  const order = r.write("stock.order", {
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      await ctx.publish(shop.placed, { id, count: 3 });
      await ctx.enqueue(shop.pack, { id });
      await ctx.delivery.send(shop.mail, { id });
      ctx.metrics.add(shop.count, 1, { plan: "pro" });
      return await ctx.query(shop.show, { id });
    },
  });
  const run = r.write("stock.run", { handler: async (ctx) => work(ctx) });
  const events = r.query("stock.events", {
    handler: async (ctx) => {
      const found: z.output<typeof placing>[] = [];
      for await (const { payload } of ctx.events(shop.placed)) found.push(payload);
      return found;
    },
  });
  return { count, order, run, events };
});

const features = [shop, stock];
const ann = { id: "ann", tenantId: "acme" };
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features }));
});
afterAll(() => app.close());
beforeEach(() => {
  seen = [];
});

test.each([
  ["event", shop.placed, "shop-order.placed"],
  ["job", shop.pack, "shop.order.pack"],
  ["channel", shop.mail, "shop-mail"],
  ["metric", shop.count, "shop.order.count"],
  ["query", shop.show, "shop.order.show"],
  ["write", shop.keep, "shop.order.keep"],
])(
  "the handle of a declared %s is frozen, and has its kind and its full name",
  (kind, handle, name) => {
    expect(handle).toEqual({ kind, name });
    expect(Object.isFrozen(handle)).toBe(true);
  },
);

test("a wrong declaration has a handle too, and fails the boot", () => {
  const wrong = defineFeature("wrong", (r) => ({
    event: r.event(7 as never, placing as never),
    query: r.query(undefined as never, { handler: () => 1 as never }),
  }));
  expect([wrong.event, wrong.query]).toEqual([
    { kind: "event", name: "7" },
    { kind: "query", name: "wrong.undefined" },
  ]);
  expect(rulesOf([wrong])).toEqual(["event-type", "handler-name"]);
});

describe("a handle stands for its name", () => {
  test("in each call of `ctx`, in consumers, hooks and projections, and in `app.call`", async () => {
    const answer = await app.call(stock.order, { id: "o1" }, { as: ann });
    expect(answer.shown).toBe("o1");
    await app.settled();
    expect(seen).toHaveLength(3);
    expect(seen).toEqual(
      expect.arrayContaining([
        ["packed", { id: "o1", count: 1 }],
        ["mailed", { id: "o1", count: 1 }],
        ["reserved", { id: "o1", count: 3 }],
      ]),
    );
    expect(app.events.at(-1)).toMatchObject({ type: "shop-order.placed", tenantId: "acme" });
    expect(app.jobs.map(({ name }) => name)).toContain("shop.order.pack");
    expect(await app.call(stock.count, { id: "o1" }, { as: ann })).toBe(3);
    expect(await app.call(stock.events, {}, { as: ann })).toEqual([{ id: "o1", count: 3 }]);
  });

  test("of a write with hooks", async () => {
    const kept = await app.call(shop.keep, { id: "o2", count: 2 }, { as: ann });
    expect(kept).toEqual({ kept: "hooked o2" });
    expect(seen).toEqual([["hooked", { id: "o2", count: 2 }]]);
  });

  test("in `ctx` outside a handler of the server", async () => {
    const ctx = await app.ctx(ann);
    expect(await ctx.query(shop.show, { id: "o3" })).toEqual({ shown: "o3" });
    await ctx.publish(shop.placed, { id: "o3" });
    const { jobId } = await ctx.enqueue(shop.pack, { id: "o3" });
    const { deliveryId } = await ctx.delivery.send(shop.mail, { id: "o3" });
    await app.settled();
    expect(app.jobs.at(-1)).toMatchObject({ jobId, name: "shop.order.pack" });
    expect(app.deliveries.at(-1)).toMatchObject({ id: deliveryId, channel: "shop-mail" });
    expect(seen).toHaveLength(3);
    expect(seen).toContainEqual(["reserved", { id: "o3", count: 1 }]);
  });

  test("in another server with that declaration", async () => {
    const other = await startTestApp(buildServer({ features: [shop] }));
    try {
      expect(await other.call(shop.show, { id: "o4" }, { as: ann })).toEqual({ shown: "o4" });
    } finally {
      await other.close();
    }
  });
});

describe("a handle that no feature of the server declares is refused by its name", () => {
  test.each<[string, (ctx: PipelineContext) => unknown, string]>([
    [
      "ctx.publish",
      (ctx) => ctx.publish(strange.placed, { id: "1" }),
      "ctx.publish: no feature of this server declares the event strange-order.placed",
    ],
    [
      "ctx.enqueue",
      (ctx) => ctx.enqueue(strange.pack, { id: "1" }),
      "ctx.enqueue: no feature of this server declares the job strange.order.pack",
    ],
    [
      "ctx.query",
      (ctx) => ctx.query(strange.show, { id: "1" }),
      "ctx.query: no feature of this server declares the query strange.order.show",
    ],
    [
      "ctx.query, with a write",
      (ctx) => ctx.query(shop.keep as never, { id: "1" } as never),
      "ctx.query: no feature of this server declares the query shop.order.keep",
    ],
    [
      "ctx.delivery.send",
      (ctx) => ctx.delivery.send(strange.mail, { id: "1" }),
      "ctx.delivery.send: there is no channel strange-mail; there are log, webhook, shop-mail",
    ],
    [
      "ctx.events",
      (ctx) => ctx.events(strange.placed)[Symbol.asyncIterator]().next(),
      "no feature of this server keeps the event strange-order.placed",
    ],
    [
      "anything, with what is no handle",
      (ctx) => ctx.publish({} as never, {} as never),
      "the event an object",
    ],
    [
      "anything, with nothing",
      (ctx) => ctx.enqueue(undefined as never, {} as never),
      "the job undefined",
    ],
  ])("by %s", async (_call, call, message) => {
    work = call;
    await expect(app.call(stock.run, {}, { as: ann })).rejects.toThrow(message);
  });

  test("by app.call", async () => {
    await expect(app.call(strange.show, { id: "1" }, { as: ann })).rejects.toThrow(
      "app.call: no feature of this server declares strange.order.show",
    );
  });

  test("by r.on, r.hook and projections, when the server boots", () => {
    const wrong = defineFeature("wrong", (r) => {
      r.on(strange.placed, { name: "listen", handler: async () => undefined });
      r.hook(strange.keep, { before: async () => undefined });
      r.hook(shop.show as never, { before: async () => undefined });
      r.projection("wrong.count", { version: 1, on: [[strange.placed, async () => []]] });
    });
    expect(problemsOf([...features, wrong])).toEqual([
      'wrong.strange-order.listen: it consumes "strange-order.placed", which no feature of this server declares',
      'wrong.count:strange-order.placed: it consumes "strange-order.placed", which no feature of this server declares',
      'hook strange.order.keep: no feature of this server declares the write "strange.order.keep"',
      'hook shop.order.show: "shop.order.show" is a query, and only writes have hooks',
    ]);
  });
});

test("a feature of one expression exports nothing", () => {
  const short = defineFeature("short", (r) =>
    r.query("order.show", { handler: async () => ({ id: "1" }) }),
  );
  expect(Object.keys(short)).toEqual(["name"]);
  expect(short.name).toBe("short");
  expect(problemsOf([short])).toEqual([]);
});

function problemsIn(given: readonly Feature[]) {
  try {
    buildServer({ features: given });
  } catch (error) {
    return (error as BootError).problems; // safe: buildServer throws nothing else
  }
  return [];
}

function problemsOf(given: readonly Feature[]): string[] {
  return problemsIn(given).map(({ key, message }) => `${key}: ${message}`);
}

function rulesOf(given: readonly Feature[]): string[] {
  return problemsIn(given).map(({ rule }) => rule);
}
