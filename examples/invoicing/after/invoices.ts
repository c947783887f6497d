// With `for: "tenants"`: the handler runs as each active tenant of the registry, at its local time.
import { defineFeature } from "keelson";

export const createInvoicesFeature = () =>
  defineFeature("invoices", (r) => {
    const invoices = r.table("invoices", { partitionKey: "dueAt", tenant: true });
    r.schedule("invoice.create", {
      cron: "0 6 1 * *",
      for: "tenants",
      handler: async (ctx, { at }) => {
        const Item = { ...invoices.key(ctx, at.toISOString()), state: "open" };
        await ctx.commit([{ Put: { TableName: invoices.name, Item } }], undefined);
      },
    });
  });
