import { access, createTenantConfig, defineFeature, type Feature } from "keelson";
import * as z from "zod";

/** One change of declarations, and what the check has to say of it. */
export interface ChangeCase {
  readonly name: string;
  /** The rule of oasdiff that it is an example of. */
  readonly oasdiff?: string;
  readonly before: Feature;
  readonly after: Feature;
  /** `breaks where rule`, `-` where nobody is broken. */
  readonly expected: readonly string[];
}

type Declare = Parameters<typeof defineFeature<object, "shop">>[1];
const shop = (declare: Declare): Feature => defineFeature("shop", declare);
const handler = async () => undefined as never; // no request is made

const post = (input: z.ZodType, more: object = {}) =>
  shop(
    (r) =>
      void r.write("item.create", {
        route: "POST /items",
        access: access.tenant,
        input,
        handler,
        ...more,
      }),
  );
const list = (input: z.ZodType, more: object = {}) =>
  shop(
    (r) =>
      void r.query("item.list", {
        route: "GET /items",
        access: access.tenant,
        input,
        handler,
        ...more,
      }),
  );
const show = (output: z.ZodType, more: object = {}) =>
  shop(
    (r) =>
      void r.query("item.show", {
        route: "GET /items/:id",
        access: access.tenant,
        input: z.object({ id: z.string() }),
        output,
        handler,
        ...more,
      }),
  );
const event = (payload: z.ZodType) => shop((r) => void r.event("item.sold", payload as never));
const job = (input: z.ZodType) => shop((r) => void r.job("item.ship", { input, handler }));
const key = (declaration: ReturnType<typeof createTenantConfig>, name = "limit") =>
  shop((r) => void r.config({ keys: { [name]: declaration } }));
const none = shop(() => {});

const name = z.object({ name: z.string() });
const pay = z.discriminatedUnion("by", [
  z.object({ by: z.literal("card"), number: z.string(), note: z.string().optional() }),
  z.object({ by: z.literal("bill"), to: z.string() }),
]);
const sized = (size: z.ZodType) => z.object({ size });

/** Twenty of oasdiff's public rules, and as many of what no API description has: messages, access rules, keys. */
export const changeCases: readonly ChangeCase[] = [
  {
    name: "a route goes",
    oasdiff: "api-removed-without-deprecation",
    before: shop((r) => {
      r.query("item.list", { route: "GET /items", access: access.tenant, handler });
      r.write("item.create", { route: "POST /items", access: access.tenant, input: name, handler });
    }),
    after: shop(
      (r) => void r.query("item.list", { route: "GET /items", access: access.tenant, handler }),
    ),
    expected: ["client POST /items route-removed"],
  },
  {
    name: "a path is renamed",
    oasdiff: "api-path-removed-without-deprecation",
    before: post(name),
    after: post(name, { route: "POST /goods" }),
    expected: ["client POST /items route-removed", "- POST /goods route-added"],
  },
  {
    name: "a route comes",
    oasdiff: "endpoint-added",
    before: none,
    after: post(name),
    expected: ["- POST /items route-added"],
  },
  {
    name: "a parameter of the path is renamed",
    before: show(name),
    after: show(name, { route: "GET /items/:item", input: z.object({ item: z.string() }) }),
    expected: [],
  },
  {
    name: "a new property has to be sent",
    oasdiff: "new-required-request-property",
    before: post(name),
    after: post(name.extend({ size: z.number() })),
    expected: ["client POST /items body.size input-required-added"],
  },
  {
    name: "a property has to be sent that did not have to",
    oasdiff: "request-property-became-required",
    before: post(name.partial()),
    after: post(name),
    expected: ["client POST /items body.name input-required-added"],
  },
  {
    name: "a property need not be sent any more",
    oasdiff: "request-property-became-optional",
    before: post(name),
    after: post(name.partial()),
    expected: ["- POST /items body.name input-property-became-optional"],
  },
  {
    name: "a new property may be sent",
    oasdiff: "new-optional-request-property",
    before: post(name),
    after: post(name.extend({ size: z.number().optional() })),
    expected: ["- POST /items body.size input-property-added"],
  },
  {
    name: "a property is read no more",
    oasdiff: "request-property-removed",
    before: post(name.extend({ size: z.number().optional() })),
    after: post(name),
    expected: ["client POST /items body.size input-property-removed"],
  },
  {
    name: "another type is asked for",
    oasdiff: "request-property-type-changed",
    before: post(sized(z.string())),
    after: post(sized(z.number())),
    expected: ["client POST /items body.size input-type-changed"],
  },
  {
    name: "null is taken no more",
    oasdiff: "request-property-became-not-nullable",
    before: post(sized(z.number().nullable())),
    after: post(sized(z.number())),
    expected: ["client POST /items body.size input-type-narrowed"],
  },
  {
    name: "fewer characters are taken in a parameter",
    oasdiff: "request-parameter-max-length-decreased",
    before: list(z.object({ q: z.string().max(50) })),
    after: list(z.object({ q: z.string().max(20) })),
    expected: ["client GET /items query.q input-max-length-lowered"],
  },
  {
    name: "a larger least number is asked for in a parameter",
    oasdiff: "request-parameter-min-increased",
    before: list(z.object({ page: z.coerce.number().min(0) })),
    after: list(z.object({ page: z.coerce.number().min(1) })),
    expected: ["client GET /items query.page input-minimum-raised"],
  },
  {
    name: "a larger number may be sent",
    oasdiff: "request-property-max-increased",
    before: post(sized(z.number().max(10))),
    after: post(sized(z.number().max(20))),
    expected: ["- POST /items body.size input-maximum-raised"],
  },
  {
    name: "a value of a parameter goes",
    oasdiff: "request-parameter-enum-value-removed",
    before: list(z.object({ order: z.enum(["name", "time"]) })),
    after: list(z.object({ order: z.enum(["name"]) })),
    expected: ["client GET /items query.order input-value-removed"],
  },
  {
    name: "a pattern is asked for",
    oasdiff: "request-property-pattern-added",
    before: post(name),
    after: post(z.object({ name: z.string().regex(/^[a-z]+$/) })),
    expected: ["client POST /items body.name input-pattern-added"],
  },
  {
    name: "a default changes",
    oasdiff: "request-property-default-value-changed",
    before: post(sized(z.number().default(1))),
    after: post(sized(z.number().default(2))),
    expected: ["- POST /items body.size input-default-changed"],
  },
  {
    name: "a property is answered no more",
    oasdiff: "response-required-property-removed",
    before: show(name.extend({ size: z.number() })),
    after: show(name),
    expected: ["client GET /items/:id output.size output-property-removed"],
  },
  {
    name: "a property is not always answered any more",
    oasdiff: "response-property-became-optional",
    before: show(name),
    after: show(name.partial()),
    expected: ["client GET /items/:id output.name output-property-became-optional"],
  },
  {
    name: "a new property is answered",
    oasdiff: "response-optional-property-added",
    before: show(name),
    after: show(name.extend({ size: z.number().optional() })),
    expected: ["- GET /items/:id output.size output-property-added"],
  },
  {
    name: "a value is answered that clients do not know",
    oasdiff: "response-property-enum-value-added",
    before: show(z.object({ state: z.enum(["new", "sold"]) })),
    after: show(z.object({ state: z.enum(["new", "sold", "lost"]) })),
    expected: ["client GET /items/:id output.state output-value-added"],
  },
  {
    name: "null is answered where it was not",
    oasdiff: "response-property-became-nullable",
    before: show(sized(z.number())),
    after: show(sized(z.number().nullable())),
    expected: ["client GET /items/:id output.size output-type-widened"],
  },
  {
    name: "a longer text may be answered",
    oasdiff: "response-property-max-length-increased",
    before: show(z.object({ note: z.string().max(50) })),
    after: show(z.object({ note: z.string().max(90) })),
    expected: ["client GET /items/:id output.note output-max-length-raised"],
  },
  {
    name: "another role is asked for",
    before: post(name, { access: access.roles("clerk", "owner") }),
    after: post(name, { access: access.roles("owner") }),
    expected: ["client POST /items access-stricter"],
  },
  {
    name: "more callers are let in",
    before: post(name, { access: access.admin }),
    after: post(name, { access: access.authenticated }),
    expected: ["- POST /items access-widened"],
  },
  {
    name: "retries need a key",
    before: post(name),
    after: post(name, { once: { required: true } }),
    expected: ["client POST /items key-required"],
  },
  {
    name: "a body of another kind is asked for",
    before: post(name),
    after: post(name, { body: "form" }),
    expected: ["client POST /items body-changed"],
  },
  {
    name: "names that are not known are refused",
    before: post(name),
    after: post(z.strictObject({ name: z.string() })),
    expected: ["client POST /items body.* input-unnamed-refused"],
  },
  {
    name: "another branch of a union may be sent",
    before: post(
      z.object({ pay: z.discriminatedUnion("by", [z.object({ by: z.literal("card") })]) }),
    ),
    after: post(
      z.object({
        pay: z.discriminatedUnion("by", [
          z.object({ by: z.literal("card") }),
          z.object({ by: z.literal("bill"), to: z.string() }),
        ]),
      }),
    ),
    expected: ["- POST /items body.pay.by input-value-added"],
  },
  {
    name: "another branch of a union has less than the others",
    before: post(z.object({ pay })),
    after: post(
      z.object({
        pay: z.discriminatedUnion("by", [...pay.options, z.object({ by: z.literal("cash") })]),
      }),
    ),
    expected: ["- POST /items body.pay.by input-value-added"],
  },
  {
    name: "a branch of a union is answered no more",
    oasdiff: "response-property-one-of-removed",
    before: show(
      z.object({
        pay: z.discriminatedUnion("by", [
          ...pay.options,
          z.object({ by: z.literal("cash"), at: z.string() }),
        ]),
      }),
    ),
    after: show(z.object({ pay })),
    expected: ["- GET /items/:id output.pay.by output-value-removed"],
  },
  {
    name: "a branch of a union has a property less",
    before: post(z.object({ pay })),
    after: post(
      z.object({
        pay: z.discriminatedUnion("by", [pay.options[0].omit({ note: true }), pay.options[1]]),
      }),
    ),
    expected: ["client POST /items body.pay.note input-property-removed"],
  },
  {
    name: "a result has another status",
    oasdiff: "response-success-status-removed",
    before: show(name),
    after: show(name, { status: 202 }),
    expected: ["client GET /items/:id status-removed", "- GET /items/:id status-added"],
  },
  {
    name: "there may be no answer where there always was one",
    before: show(name),
    after: show(name.optional()),
    expected: ["client GET /items/:id output-became-optional"],
  },
  {
    name: "an item deep inside changes",
    before: post(z.object({ rows: z.array(z.object({ n: z.int() })) })),
    after: post(z.object({ rows: z.array(z.object({ n: z.int().max(9) })) })),
    expected: ["client POST /items body.rows[].n input-maximum-lowered"],
  },
  {
    name: "an event goes",
    before: event(name),
    after: none,
    expected: ["consumer event item.sold event-removed"],
  },
  {
    name: "an event has a new property that may be missing",
    before: event(name),
    after: event(name.extend({ size: z.number().optional() })),
    expected: ["- event item.sold payload.size payload-property-added"],
  },
  {
    name: "an event has a new property that messages in the queue have not",
    before: event(name),
    after: event(name.extend({ size: z.number() })),
    expected: ["consumer event item.sold payload.size payload-required-added"],
  },
  {
    name: "an event has values that consumers elsewhere do not know",
    before: event(sized(z.number().max(5))),
    after: event(sized(z.number().max(9))),
    expected: ["consumer event item.sold payload.size payload-maximum-raised"],
  },
  {
    name: "a job refuses what is queued",
    before: job(sized(z.number())),
    after: job(sized(z.number().max(9))),
    expected: ["consumer job shop.item.ship input.size job-maximum-lowered"],
  },
  {
    name: "a job takes more",
    before: job(sized(z.number().max(5))),
    after: job(sized(z.number().max(9))),
    expected: ["- job shop.item.ship input.size job-maximum-raised"],
  },
  {
    name: "a job goes",
    before: job(name),
    after: none,
    expected: ["consumer job shop.item.ship job-removed"],
  },
  {
    name: "the bounds of a key are narrowed",
    before: key(createTenantConfig("number", { bounds: { min: 1, max: 100 }, default: 5 })),
    after: key(createTenantConfig("number", { bounds: { min: 1, max: 50 }, default: 5 })),
    expected: ["row shop:config:limit bounds-narrowed"],
  },
  {
    name: "an option of a key goes",
    before: key(createTenantConfig("select", { options: ["a", "b"], default: "a" })),
    after: key(createTenantConfig("select", { options: ["a"], default: "a" })),
    expected: ["row shop:config:limit option-removed"],
  },
  {
    name: "a key is renamed, and says so",
    before: key(createTenantConfig("number", { default: 5 })),
    after: key(createTenantConfig("number", { default: 5, formerly: "shop:config:limit" }), "most"),
    expected: ["- shop:config:most key-renamed"],
  },
  {
    name: "a key goes",
    before: key(createTenantConfig("number", { default: 5 })),
    after: none,
    expected: ["row shop:config:limit key-removed"],
  },
];
