import { buildServer } from "keelson";
import { crashEverywhere } from "keelson/testing";
import { expect, test } from "vitest";
import { storedEvent, uploads, world } from "./fixture.ts";

test("an event of others is done once, no matter when the process crashes", async () => {
  let count = 0;
  let event = storedEvent("acme/1");
  world.handle = async (ctx) => {
    if (ctx.user.tenantId === undefined) return;
    count += 1;
    await ctx.enqueue(uploads.scan, { key: `acme/1.${count}` });
    const Item = { ...uploads.table.key(ctx, "stored", event.id), count };
    const once = {
      ConditionExpression: "attribute_not_exists(#pk)",
      ExpressionAttributeNames: { "#pk": "pk" },
    };
    await ctx.commit([{ Put: { TableName: uploads.table.name, Item, ...once } }], undefined);
  };
  const cuts = await crashEverywhere(buildServer({ features: [uploads] }), {
    arrange: async () => {
      event = storedEvent("acme/1");
      [count, world.runs.length] = [0, 0];
    },
    act: async (app) => {
      const outcome = await app.deliver(event);
      if (outcome === "handed-back") throw new Error("it is running elsewhere");
      return outcome;
    },
    check: async (app) => {
      await app.settled();
      expect(await app.deliver(event)).toBe("skipped");
      expect(world.runs.filter(({ by }) => by === "scan")).toHaveLength(1);
    },
  });
  expect(cuts).toContainEqual({ moment: "after", operation: "TransactWriteItems", call: 1 });
});
