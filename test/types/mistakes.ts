/** A mistake in a declaration, and the compiler's message. */
export interface Mistake {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  /** The member on whose line the compiler reports it. */
  readonly field?: string;
}

/** A write with a statement that uses its `ctx`. */
const inWrite = (statement: string) =>
  `r.write("plan.sell", { handler: async (ctx) => { ${statement} } });`;

/** Each one statement of a feature called `shop`. */
export const mistakes: readonly Mistake[] = [
  {
    name: "a-text-that-a-request-may-set",
    code: `r.config({ keys: { title: createTenantConfig("text", { default: "", allowPerRequest: true }) } });`,
    message: `Type 'true' is not assignable to type 'false | Refused<"a request never sets a key of type text">'.`,
  },
  {
    name: "a-number-without-bounds-that-a-request-may-set",
    code: `r.config({ keys: { size: createUserConfig("number", { default: 1, allowPerRequest: true }) } });`,
    message: `Type 'true' is not assignable to type 'false | Refused<"a request sets a number only within bounds: add bounds: { min, max }">'.`,
  },
  {
    name: "a-secret-that-a-request-may-set",
    code: `r.config({ keys: { isOpen: createTenantConfig("boolean", { encrypted: true, allowPerRequest: true }) } });`,
    message: `Type 'true' is not assignable to type 'false | Refused<"a request never sets an encrypted key">'.`,
  },
  {
    name: "a-secret-that-is-computed",
    code: `r.config({ keys: { key: createTenantConfig("text", { encrypted: true, computed: async () => "x" }) } });`,
    message: `Type 'true' is not assignable to type 'false | Refused<"a computed key is never encrypted">'.`,
  },
  {
    name: "a-reply-whose-body-has-a-wrong-field",
    code: `r.write("plan.change", { output: plan, handler: async () => reply({ plan: "gold", seats: 1 }, { status: 201 }) });`,
    message: `Type 'Promise<Reply<{ readonly plan: "gold"; readonly seats: 1; }>>' is not assignable to type '"the result does not match \`output\`: plan"'.`,
  },
  {
    name: "a-result-without-a-field",
    code: `r.query("plan.show", { output: plan, handler: () => ({ plan: "pro" }) });`,
    message: `Type '{ readonly plan: "pro"; }' is not assignable to type '"the result does not match \`output\`: seats"'.`,
  },
  {
    name: "a-query-whose-input-contradicts-its-entry",
    code: `r.query("plan.current", { input: z.object({ seats: z.string() }), output: plan, handler: () => ({ plan: "pro", seats: 1 }) });`,
    message: `Type 'ZodObject<{ seats: ZodString; }, $strip>' is not assignable to type '"shop.plan.current has another input in Queries"'.`,
  },
  {
    name: "a-query-whose-output-contradicts-its-entry",
    code: `r.query("plan.current", { output: z.object({ plan: z.string() }), handler: () => ({ plan: "pro" }) });`,
    message: `Type 'ZodObject<{ plan: ZodString; }, $strip>' is not assignable to type '"shop.plan.current has another output in Queries"'.`,
  },
  {
    name: "a-write-whose-input-contradicts-its-entry",
    code: `r.write("plan.buy", { input: z.object({ seats: z.string() }), output: plan, handler: () => ({ plan: "pro", seats: 1 }) });`,
    message: `Type 'ZodObject<{ seats: ZodString; }, $strip>' is not assignable to type '"shop.plan.buy has another input in Writes"'.`,
  },
  {
    name: "a-hook-on-a-write-that-is-not-known",
    code: `r.hook("shop.plan.by", { after: () => {} });`,
    message: `Argument of type '"shop.plan.by"' is not assignable to parameter of type 'AnyWrite'.`,
  },
  {
    name: "a-job-whose-input-contradicts-its-entry",
    code: `r.job("plan.renew", { input: z.object({ id: z.number() }), handler: async () => {} });`,
    message: `Type 'ZodObject<{ id: ZodNumber; }, $strip>' is not assignable to type '"shop.plan.renew has another payload in Jobs"'.`,
  },
  {
    name: "a-tenant-that-an-open-route-may-not-have",
    code: `r.query("tenant.show", { route: "GET /tenant", access: access.everyone, handler: (ctx) => ctx.user.tenantId.length });`,
    message: `'ctx.user.tenantId' is possibly 'undefined'.`,
  },
  {
    name: "a-published-payload-with-a-field-of-a-wrong-type",
    code: inWrite(`await ctx.publish(stock.sold, {\n    id: "a",\n    seats: "1",\n  });`),
    message: `Type 'string' is not assignable to type 'number'.`,
    field: "seats",
  },
  {
    name: "a-published-payload-without-a-field",
    code: inWrite(`await ctx.publish(stock.sold, { id: "a" });`),
    message: `Property 'seats' is missing in type '{ id: string; }' but required in type '{ id: string; seats: number; }'.`,
  },
  {
    name: "a-published-payload-with-an-unknown-field",
    code: inWrite(`await ctx.publish(stock.sold, { id: "a", seats: 1, colour: "red" });`),
    message: `Object literal may only specify known properties, and 'colour' does not exist in type '{ id: string; seats: number; }'.`,
  },
  {
    name: "a-published-payload-of-a-wrong-type",
    code: inWrite(
      `const payload = { id: "a", seats: "1" }; await ctx.publish(stock.sold, payload);`,
    ),
    message: `Argument of type '{ id: string; seats: string; }' is not assignable to parameter of type '{ id: string; seats: number; }'.\n  Types of property 'seats' are incompatible.\n    Type 'string' is not assignable to type 'number'.`,
  },
  {
    name: "an-enqueued-payload-with-a-field-of-a-wrong-type",
    code: inWrite(`await ctx.enqueue(stock.ship, {\n    seats: "1",\n  });`),
    message: `Type 'string' is not assignable to type 'number'.`,
    field: "seats",
  },
  {
    name: "an-enqueued-payload-without-a-field",
    code: inWrite(`await ctx.enqueue(stock.ship, {});`),
    message: `Property 'seats' is missing in type '{}' but required in type '{ seats: number; }'.`,
  },
  {
    name: "an-input-of-a-query-with-a-field-of-a-wrong-type",
    code: inWrite(`await ctx.query(stock.find, {\n    seats: "1",\n  });`),
    message: `Type 'string' is not assignable to type 'number'.`,
    field: "seats",
  },
  {
    name: "an-input-of-a-query-without-a-field",
    code: inWrite(`await ctx.query(stock.find, {});`),
    message: `Property 'seats' is missing in type '{}' but required in type '{ seats: number; }'.`,
  },
  {
    name: "a-message-with-a-field-of-a-wrong-type",
    code: inWrite(`await ctx.delivery.send(stock.pager, {\n    seats: "1",\n  });`),
    message: `Type 'string' is not assignable to type 'number'.`,
    field: "seats",
  },
  {
    name: "a-label-with-an-unknown-value",
    code: inWrite(`ctx.metrics.add(stock.sales, 1, { plan: "gold" });`),
    message: `Type '"gold"' is not assignable to type '"free" | "pro" | undefined'.`,
  },
  {
    name: "a-label-of-a-metric-without-labels",
    code: inWrite(`ctx.metrics.add(stock.visits, 1, { plan: "pro" });`),
    message: `Type 'string' is not assignable to type 'undefined'.`,
  },
  {
    name: "a-job-that-is-published",
    code: inWrite(`await ctx.publish(stock.ship, { seats: 1 });`),
    message: `Argument of type 'JobHandle<{ seats: number; }>' is not assignable to parameter of type 'EventHandle<{ seats: number; }, unknown>' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.\n  Types of property 'kind' are incompatible.\n    Type '"job"' is not assignable to type '"event"'.`,
  },
  {
    name: "an-event-that-is-enqueued",
    code: inWrite(`await ctx.enqueue(stock.sold, { id: "a", seats: 1 });`),
    message: `Argument of type 'EventHandle<{ id: string; seats: number; }, { id: string; seats: number; }>' is not assignable to parameter of type '"shop.plan.renew" | JobHandle<{ id: string; seats: number; }>'.\n  Type 'EventHandle<{ id: string; seats: number; }, { id: string; seats: number; }>' is not assignable to type 'JobHandle<{ id: string; seats: number; }>' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.\n    Types of property 'kind' are incompatible.\n      Type '"event"' is not assignable to type '"job"'.`,
  },
  {
    name: "a-write-that-is-queried",
    code: inWrite(`await ctx.query(stock.buy, { seats: 1 });`),
    message: `Argument of type 'WriteHandle<{ seats: number; }, { seats: number; }, { seats: number; }>' is not assignable to parameter of type 'AnyQuery'.\n  Type 'WriteHandle<{ seats: number; }, { seats: number; }, { seats: number; }>' is not assignable to type 'Handle<"query">'.\n    Types of property 'kind' are incompatible.\n      Type '"write"' is not assignable to type '"query"'.`,
  },
  {
    name: "a-consumer-of-a-job",
    code: `r.on(stock.ship, { name: "note", handler: async () => {} });`,
    message: `Argument of type 'JobHandle<{ seats: number; }>' is not assignable to parameter of type 'EventHandle<{ seats: number; }, void>' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.\n  Types of property 'kind' are incompatible.\n    Type '"job"' is not assignable to type '"event"'.`,
  },
  {
    name: "a-hook-on-a-query",
    code: `r.hook(stock.find, { after: () => {} });`,
    message: `Argument of type 'QueryHandle<{ seats: number; }, { seats: number; }>' is not assignable to parameter of type 'AnyWrite'.\n  Type 'QueryHandle<{ seats: number; }, { seats: number; }>' is not assignable to type 'Handle<"write">'.\n    Types of property 'kind' are incompatible.\n      Type '"query"' is not assignable to type '"write"'.`,
  },
  {
    name: "a-projection-of-a-job",
    code: `r.projection("plan.usage", { version: 1, on: [[stock.ship, () => []]] });`,
    message: `Type 'JobHandle<{ seats: number; }>' is not assignable to type 'Handle<"event">'.\n  Types of property 'kind' are incompatible.\n    Type '"job"' is not assignable to type '"event"'.`,
  },
  {
    name: "a-published-name-without-an-entry",
    code: inWrite(`await ctx.publish("item.sold", { id: "a", seats: 1 });`),
    message: `Argument of type 'string' is not assignable to parameter of type 'EventHandle<unknown, unknown>'.`,
  },
  {
    name: "an-enqueued-name-without-an-entry",
    code: inWrite(`await ctx.enqueue("stock.item.ship", { seats: 1 });`),
    message: `Argument of type '"stock.item.ship"' is not assignable to parameter of type '"shop.plan.renew" | JobHandle<unknown>'.`,
  },
  {
    name: "a-consumer-of-a-name-without-an-entry",
    code: `r.on("item.sold", { name: "note", handler: async () => {} });`,
    message: `Argument of type 'string' is not assignable to parameter of type 'EventHandle<unknown, unknown>'.`,
  },
  {
    name: "an-effect-of-a-query",
    code: `r.query("plan.look", { handler: async (ctx) => ctx.publish(stock.sold, { id: "a", seats: 1 }) });`,
    message: `Property 'publish' does not exist on type 'QueryContext<User>'.`,
  },
  {
    name: "a-table-that-does-not-say-whether-it-has-tenants",
    code: `r.table("seats", { partitionKey: "pk" });`,
    message: `Property 'tenant' is missing in type '{ partitionKey: "pk"; }' but required in type 'TableOptions<never, "pk", never, boolean>'.`,
  },
  {
    name: "a-positional-consumer",
    code: `r.on(stock.sold, "note", async () => {});`,
    message: `Expected 2 arguments, but got 3.`,
  },
  {
    name: "a-name-alone-as-once",
    code: `r.write("plan.sell", { once: "idempotency-key", handler: async () => {} });`,
    message: `Type 'string' is not assignable to type 'false | OnceOptions'.`,
  },
];

/** A whole module around a statement. */
export const moduleOf = (
  code: string,
): string => `import { access, createTenantConfig, createUserConfig, defineFeature, type Query, reply, type Write } from "keelson";
import { z } from "zod";

const taken = z.object({ seats: z.number() });
const plan = z.object({ plan: z.enum(["free", "pro"]), seats: z.number() });
declare module "keelson" {
  interface Queries { "shop.plan.current": Query<typeof taken, typeof plan> }
  interface Writes { "shop.plan.buy": Write<typeof taken, typeof plan> }
  interface Jobs { "shop.plan.renew": { id: string } }
}
const stock = defineFeature("stock", (r) => ({
  sold: r.event("item.sold", z.object({ id: z.string(), seats: z.number() })),
  ship: r.job("item.ship", { input: taken, handler: async () => {} }),
  find: r.query("item.find", { input: taken, output: taken, handler: async () => ({ seats: 1 }) }),
  buy: r.write("item.buy", { input: taken, output: taken, handler: async () => ({ seats: 1 }) }),
  pager: r.channel("pager", { input: taken, send: async () => {} }),
  sales: r.metric("item.sales", { labels: { plan: ["free", "pro"] } }),
  visits: r.metric("item.visits"),
}));
export const used = [access, createTenantConfig, createUserConfig, reply, stock];
defineFeature("shop", (r) => {
  ${code}
});
`;
