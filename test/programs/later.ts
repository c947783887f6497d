import { access, buildServer, defineFeature } from "keelson";
import { z } from "zod";

const invoice = z.object({ id: z.string() });
const invoices = defineFeature("invoices", (r) => {
  const remind = r.job("invoice.remind", {
    input: invoice,
    handler: (ctx, { id }) => ctx.log.info("invoice.reminded", { id }),
  });
  r.write("invoice.send", {
    route: "POST /invoices/:id/send",
    access: access.tenant,
    input: invoice,
    handler: (ctx, input) => ctx.enqueue(remind, input, { delaySeconds: 3 * 86_400 }),
  });
});
export const server = buildServer({ features: [invoices] });
