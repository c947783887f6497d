import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  createSystemConfig,
  createTenantConfig,
  defineFeature,
  type PipelineContext,
} from "keelson";
import { github, hmac, slack, standardWebhooks, stripe } from "keelson/webhooks";
import { z } from "zod";

export const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const event = z.object({ id: z.string().min(1), account: z.string().optional() });

export type Event = z.output<typeof event>;

/** The behaviour of the handlers, and their runs so far. */
export const world = {
  handle: async (_ctx: PipelineContext, _event: unknown): Promise<unknown> => undefined,
  verify: async (_delivery: unknown): Promise<unknown> => true,
  id: (given: unknown): unknown => (given as Event).id,
  tenant: (given: unknown): unknown => (given as Event).account,
  runs: [] as { readonly tenantId: string | undefined; readonly event: unknown }[],
};

const handler = async (ctx: PipelineContext, given: unknown) => {
  world.runs.push({ tenantId: ctx.user.tenantId, event: given });
  return world.handle(ctx, given);
};

const own = {
  input: event,
  id: (given: Event) => given.id,
  tenant: (given: Event) => given.account,
  handler,
};

/** One webhook for each way to verify and to name the tenant. */
export const hooks = defineFeature("hooks", (r) => {
  const config = r.config({
    keys: {
      shared: createSystemConfig("text", { encrypted: true }),
      next: createSystemConfig("text", {}),
      own: createTenantConfig("text", { encrypted: true }),
    },
  });
  const table = r.table("booked", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const isBooked = r.query("payment.is-booked", {
    input: z.object({ id: z.string() }),
    handler: async (ctx, { id }) => {
      const Key = table.key(ctx, "payments", id);
      return (await ctx.db.send(new GetCommand({ TableName: table.name, Key }))).Item !== undefined;
    },
  });
  const book = r.job("payment.book", {
    input: z.object({ id: z.string() }),
    handler: async (ctx, payload) =>
      void world.runs.push({ tenantId: ctx.user.tenantId, event: payload }),
  });
  r.webhook("stripe.received", {
    ...own,
    route: "POST /hooks/stripe",
    verify: stripe({ secret: ["new", secret] }),
  });
  r.webhook("standard.received", {
    ...own,
    id: undefined as never,
    route: "POST /hooks/standard",
    verify: standardWebhooks({ secret }),
  });
  r.webhook("github.received", {
    route: "POST /hooks/github/:tenant",
    verify: github({ secret }),
    tenant: { param: "tenant" },
    handler,
  });
  r.webhook("slack.received", {
    ...own,
    route: "POST /hooks/slack",
    rateLimit: { per: "tenant", requests: 2, window: "day" },
    verify: slack({ secret }),
    status: [202, 204],
  });
  r.webhook("own.received", {
    ...own,
    route: "POST /hooks/own/:tenant",
    verify: hmac({ secret: config.own, header: "X-Signature", prefix: "sha256=" }),
    tenant: { param: "tenant" },
  });
  r.webhook("config.received", {
    ...own,
    route: "POST /hooks/config",
    verify: hmac({ secret: [config.next, config.shared, "code"], header: "X-Signature" }),
  });
  r.webhook("function.received", {
    route: "POST /hooks/function/:place",
    verify: (delivery) => world.verify(delivery) as Promise<boolean>,
    id: (given) => world.id(given) as string,
    tenant: (given) => world.tenant(given) as string,
    handler,
  });
  r.webhook("list.received", {
    route: "POST /hooks/list",
    body: "value",
    verify: () => true,
    tenant: () => "acme",
    handler,
  });
  return { config, table, book, isBooked };
});
