import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  type CommitItem,
  defineFeature,
  type PipelineContext,
  type QueryContext,
  reply,
} from "keelson";
import { CrashError, type Cut, crashEverywhere, type TestApp } from "keelson/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const ann = { id: "ann", tenantId: "acme" };
const parcel = z.object({ id: z.string() });

const parcels = defineFeature("crashed-parcels", (r) => {
  const table = r.table("counts", { partitionKey: "pk", tenant: false });
  // Counts in the store: a second run shows.
  const count = (pk: string): CommitItem => {
    const add = { UpdateExpression: "ADD times :one", ExpressionAttributeValues: { ":one": 1 } };
    return { Update: { TableName: table.name, Key: { pk }, ...add } };
  };
  const counting = async (ctx: PipelineContext, what: string) =>
    ctx.commit([count(what)], undefined);

  const sent = r.event("crashed-parcel.sent", parcel);
  r.on(sent, { name: "note", handler: (ctx) => counting(ctx, "event") });
  const joined = r.job("parcel.join", {
    input: parcel,
    dedupKey: () => crypto.randomUUID(), // what is enqueued twice runs twice
    handler: (ctx) => counting(ctx, "joined"),
  });
  const later = r.job("parcel.later", { input: parcel, handler: (ctx) => counting(ctx, "later") });
  const immediate = r.job("parcel.hurry", {
    input: parcel,
    dedupKey: () => crypto.randomUUID(),
    handler: (ctx) => counting(ctx, "immediate"),
  });
  const pager = r.channel("crashed-pager", {
    input: parcel,
    send: (ctx) => counting(ctx, "delivery"),
  });

  const effects = async (ctx: PipelineContext) => {
    await ctx.enqueue(immediate, { id: "first" }, { afterCommit: false });
    await ctx.enqueue(joined, { id: "1" });
    await ctx.enqueue(later, { id: "1" }, { delaySeconds: 3_600 });
    await ctx.publish(sent, { id: "1" });
    await ctx.delivery.send(pager, { id: "1" });
    await ctx.enqueue(immediate, { id: "last" }, { afterCommit: false });
  };
  const route = (name: string) => ({ route: `POST /${name}`, access: access.authenticated });
  r.write("parcel.commit", {
    ...route("commit"),
    handler: async (ctx) => {
      await effects(ctx);
      return ctx.commit([count("parcel")], { done: true });
    },
  });
  r.write("parcel.return", {
    ...route("return"),
    handler: async (ctx) => {
      await effects(ctx);
      return { done: true };
    },
  });
  r.write("parcel.refuse", {
    ...route("refuse"),
    handler: async (ctx) => {
      await effects(ctx);
      return reply({ done: false }, { status: 422 });
    },
  });
  r.write("parcel.fail", {
    ...route("fail"),
    handler: async (ctx) => {
      await effects(ctx);
      const Key = { pk: "nowhere" };
      const ConditionExpression = "attribute_exists(pk)";
      const check = { ConditionCheck: { TableName: table.name, Key, ConditionExpression } };
      await ctx.commit([count("parcel"), check], { done: true }).catch(() => undefined);
      return { done: false };
    },
  });
  r.query("parcel.times", {
    input: z.object({ what: z.string() }),
    output: z.number(),
    handler: async (ctx: QueryContext, { what }) => {
      const Key = { pk: what };
      const { Item } = await ctx.db.send(
        new GetCommand({ TableName: table.name, Key, ConsistentRead: true }),
      );
      return Number(Item?.["times"] ?? 0);
    },
  });
});
const server = buildServer({ features: [parcels] });

const send = (app: TestApp, path: string) =>
  app.fetch(path, { body: {}, as: ann, headers: { "idempotency-key": "k1" } });

/** How often each effect happened, of which those that join come first. */
async function timesOf(app: TestApp) {
  const times = (what: string): Promise<unknown> =>
    app.call("crashed-parcels.parcel.times", { what });
  await app.settled();
  const joined = await Promise.all(["event", "delivery", "joined"].map(times));
  const [parcel, immediate] = await Promise.all(["parcel", "immediate"].map(times));
  app.clock.advance(3_600_000 + 60_000);
  await app.settled();
  return { joined: [...joined, await times("later")], parcel, immediate: Number(immediate) };
}
const once = [1, 1, 1, 1];
const never = [0, 0, 0, 0];

/** The operations at which runs were cut: both kinds of effects store or send something. */
const expectCutsOf = (cuts: readonly Cut[]) =>
  expect(cuts.map(({ operation }) => operation)).toEqual(
    expect.arrayContaining(["PutItem", "SendMessage", "TransactWriteItems", "PutEvents"]),
  );

describe("wherever a process crashes", () => {
  test.each(["commit", "return"])(
    "a write that %ss and is repeated has its joined effects once, and its immediate ones at least once",
    async (path) => {
      const cuts = await crashEverywhere(server, {
        act: (app) => send(app, `/${path}`),
        check: async (app, answer) => {
          expect([answer.status, await answer.json()]).toEqual([200, { done: true }]);
          const { joined, parcel, immediate } = await timesOf(app);
          expect([joined, parcel]).toEqual([once, path === "commit" ? 1 : 0]);
          expect(immediate).toBeGreaterThanOrEqual(2);
        },
      });
      expectCutsOf(cuts);
    },
  );

  test("while messages are processed too, joined effects happen once", async () => {
    await crashEverywhere(server, {
      act: async (app) => {
        const answer = await send(app, "/commit");
        await app.settled();
        return answer;
      },
      check: async (app, answer) => {
        expect(answer.status).toBe(200);
        const { joined, parcel, immediate } = await timesOf(app);
        expect([joined, parcel]).toEqual([once, 1]);
        expect(immediate).toBeGreaterThanOrEqual(2);
      },
    });
  });

  test("a write that nobody repeats has its joined effects if and only if it is committed", async () => {
    const seen = new Set<unknown>();
    await crashEverywhere(server, {
      act: (app) =>
        send(app, "/commit").catch((error: unknown) => {
          if (error instanceof CrashError) return undefined;
          throw error;
        }),
      check: async (app) => {
        const { joined, parcel, immediate } = await timesOf(app);
        expect(joined).toEqual(parcel === 1 ? once : never);
        // Whoever has committed has sent both before.
        if (parcel === 1) expect(immediate).toBe(2);
        seen.add(`${parcel} ${immediate}`);
      },
    });
    // Cut before the first one, between both, after both, and after the commit.
    expect([...seen].toSorted()).toEqual(["0 0", "0 1", "0 2", "1 2"]);
  });

  test.each(["refuse", "fail"])(
    "a write whose answer or commit %ss has none of its joined effects, and its immediate ones at least once",
    async (path) => {
      await crashEverywhere(server, {
        act: (app) => send(app, `/${path}`),
        check: async (app, answer) => {
          expect(await answer.json()).toEqual({ done: false });
          const { joined, parcel, immediate } = await timesOf(app);
          expect([joined, parcel]).toEqual([never, 0]);
          expect(immediate).toBeGreaterThanOrEqual(2);
        },
      });
    },
  );
});
