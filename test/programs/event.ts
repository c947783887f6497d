import { access, buildServer, defineFeature } from "keelson";
import { z } from "zod";

const order = z.object({ id: z.string(), cents: z.number() });
const shop = defineFeature("shop", (r) => {
  const placed = r.event("order.placed", order);
  r.write("order.place", {
    route: "POST /orders",
    access: access.tenant,
    input: order,
    handler: (ctx, input) => ctx.publish(placed, input),
  });
  return { placed };
});
const mail = defineFeature("mail", (r) => {
  r.on(shop.placed, {
    name: "confirm",
    handler: (ctx, { payload }) => ctx.log.info("order.confirmed", { id: payload.id }),
  });
});
export const server = buildServer({ features: [shop, mail] });
