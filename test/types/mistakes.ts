/** A mistake in a declaration, and what the compiler says to it. */
export interface Mistake {
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

/** Each one statement of a feature called `shop`. */
export const mistakes: readonly Mistake[] = [
  {
    name: "a-text-that-a-request-may-set",
    code: `r.config({ keys: { title: createTenantConfig("text", { default: "", allowPerRequest: true }) } });`,
    message: `Type 'true' is not assignable to type 'false | Refused<"a request never sets a text key">'.`,
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
    message: `Argument of type '"shop.plan.by"' is not assignable to parameter of type '"shop.plan.buy"'.`,
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
export const used = [access, createTenantConfig, createUserConfig, reply];
defineFeature("shop", (r) => {
  ${code}
});
`;
