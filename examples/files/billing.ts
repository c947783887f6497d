import { defineFeature, type Query } from "keelson";
import * as z from "zod";

const planInput = z.object({});
const planOutput = z.object({ plan: z.enum(["free", "pro"]) });

declare module "keelson" {
  interface Queries {
    "billing.plan.current": Query<typeof planInput, typeof planOutput>;
  }
}

/** Which plan a tenant is on: `acme` pays, everybody else tries it out. */
export const billing = defineFeature("billing", (r) => {
  r.query("plan.current", {
    input: planInput,
    output: planOutput,
    handler: async (ctx) => ({ plan: ctx.user.tenantId === "acme" ? "pro" : "free" }),
  });
});
