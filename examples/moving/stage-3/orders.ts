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
  /** The table of the earlier stages. It stays complete, so that you can go back. */
  const former = r.table("former-orders", { partitionKey: "pk", sortKey: "sk", tenant: false });

  const create = r.write("order.create", {
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
      const Item = { ...table.key(ctx, "orders", created.id), ...created };
      const key = { pk: `TENANT#${ctx.user.tenantId}`, sk: `ORDER#${created.id}` };
      const items = [
        { Put: { TableName: table.name, Item } },
        { Put: { TableName: former.name, Item: { ...key, ...created } } },
      ];
      return ctx.commit(items, reply(created, { status: 201 }));
    },
  });

  const list = r.query("order.list", {
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

  return { create, list, table, former };
});
