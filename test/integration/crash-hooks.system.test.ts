import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  type CommitItem,
  defineFeature,
  type QueryContext,
  type Write,
} from "keelson";
import { crashEverywhere } from "keelson/testing";
import { expect, test } from "vitest";
import { z } from "zod";

const order = z.object({ item: z.string() });
const done = z.object({ ordered: z.string() });

declare module "keelson" {
  interface Writes {
    "crashed-shop.order.commit": Write<typeof order, typeof done>;
    "crashed-shop.order.return": Write<typeof order, typeof done>;
  }
  interface Events {
    "order.counted": z.output<typeof done>;
  }
}

/** What ran after a write, and what was heard of it. */
let [followed, heard] = [0, 0];

const shop = defineFeature("crashed-shop", (r) => {
  const orders = r.table("orders", { partitionKey: "pk", tenant: false });
  r.write("order.commit", {
    route: "POST /commit",
    access: access.authenticated,
    input: order,
    output: done,
    handler: async (ctx, { item }) => ctx.commit([count(orders.name, "orders")], { ordered: item }),
  });
  r.write("order.return", {
    route: "POST /return",
    access: access.authenticated,
    input: order,
    output: done,
    handler: async (_ctx, { item }) => ({ ordered: item }),
  });
});
const ledger = defineFeature("crashed-ledger", (r) => {
  const entries = r.table("entries", { partitionKey: "pk", tenant: false });
  r.event("order.counted", done);
  r.on("order.counted", {
    name: "hear",
    handler: async () => {
      heard += 1;
    },
  });
  for (const write of ["crashed-shop.order.commit", "crashed-shop.order.return"] as const) {
    r.hook(write, {
      before: (ctx, { item }) => ctx.publish("order.counted", { ordered: item }),
      commit: () => [count(entries.name, "entries")],
      after: () => {
        followed += 1;
      },
    });
  }
  r.query("entry.count", { handler: async (ctx) => timesOf(ctx, entries.name, "entries") });
});

const server = buildServer({ features: [shop, ledger] });
const ann = { id: "ann", tenantId: "acme" };

// Counts in the store: what a second run adds, shows.
function count(TableName: string, pk: string): CommitItem {
  const add = { UpdateExpression: "ADD times :one", ExpressionAttributeValues: { ":one": 1 } };
  return { Update: { TableName, Key: { pk }, ...add } };
}

async function timesOf(ctx: QueryContext, TableName: string, pk: string): Promise<unknown> {
  const { Item } = await ctx.db.send(
    new GetCommand({ TableName, Key: { pk }, ConsistentRead: true }),
  );
  return Item?.["times"];
}

test.each(["commit", "return"])(
  "wherever a process crashes, the hooks of a write that %ss act once, and its follow-ups at most once",
  async (does) => {
    const cuts = await crashEverywhere(server, {
      arrange: async () => {
        [followed, heard] = [0, 0];
      },
      act: (app) =>
        app.fetch(`/${does}`, {
          body: { item: "tea" },
          as: ann,
          headers: { "idempotency-key": "k1" },
        }),
      check: async (app, answer) => {
        expect([answer.status, await answer.json()]).toEqual([200, { ordered: "tea" }]);
        await app.settled();
        expect([await app.call("crashed-ledger.entry.count"), heard]).toEqual([1, 1]);
        expect(followed).toBeLessThanOrEqual(1);
      },
    });
    expect(cuts.map(({ moment, operation }) => `${moment} ${operation}`)).toEqual(
      expect.arrayContaining([
        "before PutItem",
        "after PutItem",
        "before TransactWriteItems",
        "after TransactWriteItems",
      ]),
    );
  },
);
