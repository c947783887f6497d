import { createSystemConfig, defineFeature, PermanentError } from "keelson";
import { stripe } from "keelson/webhooks";
import * as z from "zod";
import type { ChargePlan } from "./payments.ts";

const planInput = z.object({});
const planOutput = z.object({ plan: z.enum(["free", "pro"]) });
const month = z.object({ month: z.string().regex(/^\d{4}-\d{2}$/) });

/** An event of the payment provider. `account` is the tenant, if the event is about one. */
const paymentEvent = z.object({ id: z.string(), type: z.string(), account: z.string().optional() });

/** Tenants on the paid plan; all other tenants have the trial plan. */
const customers = ["acme"];

/** Options that the application's developer sets when building the feature. */
export interface BillingOptions {
  /** Charges at the payment provider. */
  readonly charge: ChargePlan;
}

/** Plans of tenants, and charges for them. */
export const createBillingFeature = ({ charge }: BillingOptions) =>
  defineFeature("billing", (r) => {
    const config = r.config({
      keys: { paymentSecret: createSystemConfig("text", { encrypted: true }) },
    });

    const currentPlan = r.query("plan.current", {
      input: planInput,
      output: planOutput,
      handler: async (ctx) => ({
        plan: customers.some((one) => one === ctx.user.tenantId) ? "pro" : "free",
      }),
    });

    const chargePlan = r.job("plan.charge", {
      input: month,
      handler: async (ctx, payload) => {
        const { tenantId } = ctx.user;
        if (tenantId === undefined)
          throw new PermanentError("a plan belongs to a tenant, and the charge has no tenant");
        // No transaction can include the provider: a job that crashes and runs again charges with the same key.
        const { id } = await ctx.step("charge", { ifUnknown: "retry" }, (key) =>
          charge({ tenantId, cents: 4_900, ...payload }, key),
        );
        await ctx.delivery.send("log", { text: "the plan was charged", charge: id, ...payload });
      },
    });

    r.schedule("plan.monthly", {
      cron: "0 6 1 * *",
      timeZone: "Europe/Paris",
      handler: async (ctx, { at }) => {
        const payload = { month: at.toISOString().slice(0, 7) };
        // Not with the commit, which takes 100 items: there may be more customers.
        for (const tenantId of customers)
          await ctx.enqueue(chargePlan, payload, { tenantId, afterCommit: false });
      },
    });

    // The provider signs each event, and sends it again until it is answered: it runs once by its ID.
    r.webhook("payment.received", {
      route: "POST /hooks/payments",
      verify: stripe({ secret: config.paymentSecret }),
      input: paymentEvent,
      id: (event) => event.id,
      tenant: (event) => event.account,
      handler: async (ctx, { id, type }) => {
        await ctx.delivery.send("log", {
          text: "the provider reported a payment",
          event: id,
          type,
        });
      },
    });

    return { config, currentPlan };
  });

/** Query of a tenant's plan. */
export type CurrentPlan = ReturnType<typeof createBillingFeature>["currentPlan"];
