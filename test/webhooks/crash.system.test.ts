import { buildServer } from "keelson";
import { crashEverywhere } from "keelson/testing";
import { signedHeaders, stripe } from "keelson/webhooks";
import { expect, test } from "vitest";
import { hooks, secret, world } from "./fixture.ts";

const as = { id: "ann", tenantId: "acme" };
const event = { id: "evt_1", account: "acme" };

test("a webhook is done once, no matter when the process crashes", async () => {
  let count = 0;
  world.handle = async (ctx) => {
    count += 1;
    const Item = { ...hooks.table.key(ctx, "payments", event.id), count };
    await ctx.enqueue(hooks.book, { id: `${event.id}.${count}` });
    const names = { "#pk": "pk" };
    const once = {
      ConditionExpression: "attribute_not_exists(#pk)",
      ExpressionAttributeNames: names,
    };
    return ctx.commit([{ Put: { TableName: hooks.table.name, Item, ...once } }], { booked: true });
  };
  const cuts = await crashEverywhere(buildServer({ features: [hooks] }), {
    arrange: async () => {
      count = 0;
      world.runs.length = 0;
    },
    act: async (app) => {
      const body = JSON.stringify(event);
      const timestampSeconds = Math.floor(app.clock.now() / 1_000);
      const headers = await signedHeaders(stripe({ secret }), body, { timestampSeconds });
      const type = { "content-type": "application/json" };
      return app.fetch("/hooks/stripe", { method: "POST", body, headers: { ...type, ...headers } });
    },
    check: async (app, answer) => {
      expect([answer.status, await answer.json()]).toEqual([200, { booked: true }]);
      expect(await app.call(hooks.isBooked, { id: event.id }, { as })).toBe(true);
      await app.settled();
      const booked = world.runs.filter(({ event }) => JSON.stringify(event).includes("evt_1."));
      expect(booked).toHaveLength(1);
    },
  });
  expect(cuts).toContainEqual({ moment: "after", operation: "TransactWriteItems", call: 1 });
});
