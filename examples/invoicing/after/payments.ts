// With `r.webhook`: the handler gets a verified event, once, behind the wall of its tenant.
import { access, defineFeature } from "keelson";
import { stripe } from "keelson/webhooks";
import * as z from "zod";

const event = z.object({ id: z.string(), account: z.string().optional(), cents: z.int() });

export const createPaymentsFeature = (secret: string) =>
  defineFeature("payments", (r) => {
    const payments = r.table("payments", { partitionKey: "pk", sortKey: "id", tenant: true });
    r.webhook("payment.received", {
      route: "POST /hooks/stripe",
      verify: stripe({ secret }),
      input: event,
      id: ({ id }) => id,
      tenant: ({ account }) => account,
      handler: async (ctx, { id, cents }) => {
        const Item = { ...payments.key(ctx, "payments", id), cents };
        await ctx.commit([{ Put: { TableName: payments.name, Item } }], undefined);
      },
    });
    r.query("payment.list", {
      route: "GET /payments",
      access: access.authenticated,
      handler: async (ctx) => {
        const { items } = await payments.page(ctx, { partition: "payments", limit: 100 });
        return items.map(({ id, cents }) => ({ id: String(id), cents: Number(cents) }));
      },
    });
  });
