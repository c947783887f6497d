import { randomUUID } from "node:crypto";
import { access, createTenantConfig, defineFeature, reply, ValidationError } from "keelson";
import { z } from "zod";

const order = z.object({ id: z.string(), item: z.string(), quantity: z.number() });

export const orders = defineFeature("orders", (r) => {
  const config = r.config({
    keys: {
      maxQuantity: createTenantConfig("number", { default: 50, bounds: { min: 1, max: 1_000 } }),
    },
  });
  const table = r.table("orders", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const placed = r.event("order.accepted", order);

  r.write("order.create", {
    route: "POST /orders",
    access: access.authenticated,
    input: z.object({ item: z.string().min(1), quantity: z.number().min(1) }),
    output: order,
    status: 201,
    once: { required: true, keepSeconds: 3_600 },
    handler: async (ctx, { item, quantity }) => {
      const maxQuantity = await ctx.config(config.maxQuantity);
      if (quantity > maxQuantity)
        throw new ValidationError([{ field: "quantity", error: `is above ${maxQuantity}` }]);
      const created = { id: randomUUID(), item, quantity };
      await ctx.publish(placed, created);
      const Item = { ...table.key(ctx, "orders", created.id), ...created };
      return ctx.commit(
        [{ Put: { TableName: table.name, Item } }],
        reply(created, { status: 201 }),
      );
    },
  });

  r.query("order.list", {
    route: "GET /orders",
    access: access.authenticated,
    output: z.object({ items: z.array(order) }),
    handler: async (ctx) => {
      const items: unknown[] = [];
      let cursor: string | undefined;
      do {
        const page = await table.page(ctx, { partition: "orders", limit: 100, cursor });
        items.push(...page.items);
        cursor = page.cursor;
      } while (cursor !== undefined);
      return { items: z.array(order).parse(items) };
    },
  });

  r.on(placed, {
    name: "confirm",
    handler: async (ctx, { payload: { id } }) => {
      await ctx.delivery.send("log", { text: `order ${id} is confirmed` });
    },
  });
});
