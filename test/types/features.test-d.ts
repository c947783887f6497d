import { Readable } from "node:stream";
import {
  access,
  buildServer,
  type ConfigKeyHandle,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type FeatureBuilder,
  type OnceOptions,
  type PipelineContext,
  type Query,
  type QueryContext,
  type Reply,
  type RunOptions,
  reply,
  resolveConfigOrParam,
  type Server,
  type TableHandle,
  type TablePage,
  type User,
  type Write,
} from "keelson";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";

const planInput = z.object({ at: z.coerce.date() });
const planOutput = z.object({ plan: z.enum(["free", "pro"]), seats: z.number().optional() });
const team = z.object({ team: z.string() });
const count = z.object({ count: z.number() });

declare module "keelson" {
  interface Queries {
    "typed.plan.current": Query<typeof planInput, typeof planOutput>;
    "typed.seat.count": Query<typeof team, typeof count>;
  }
}

const r = {} as FeatureBuilder;
const ctx = {} as PipelineContext;

describe("features", () => {
  test("what a declaration returns becomes properties of the feature", () => {
    const files = defineFeature("files", (builder) => {
      const config = builder.config({
        keys: {
          limit: createTenantConfig("number", { default: 1 }),
          name: createTenantConfig("text", {}),
        },
      });
      return { config, accept: [".pdf"] };
    });
    expectTypeOf(files.name).toBeString();
    expectTypeOf(files.config.limit).toEqualTypeOf<ConfigKeyHandle<number>>();
    expectTypeOf(files.config.name).toEqualTypeOf<ConfigKeyHandle<string | undefined>>();
    expectTypeOf(files.accept).toExtend<readonly string[]>();
    // @ts-expect-error nothing else is there
    files.other;
    buildServer({ features: [files] });
  });

  test("a write and the server take the same options of `once`, and the server a wait as well", () => {
    const write = (once: OnceOptions | false) =>
      r.write("plan.buy", { once, handler: async () => "bought" });
    write({ required: true, keepSeconds: 86_400 });
    write({ keepSeconds: 86_400 });
    write({ key: "either" });
    write({ key: "idempotency-key", required: false });
    write({});
    write(false);
    // @ts-expect-error no other option
    write({ required: true, keepDays: 1 });
    // @ts-expect-error a key alone is no option
    write("idempotency-key");
    // @ts-expect-error no such header
    write({ key: "x-request-id" });
    // @ts-expect-error only the server waits
    write({ waitMs: 10 });
    // @ts-expect-error `false` stands alone
    write({ key: false });
    buildServer({ features: [], once: { key: "idempotency-key", required: true, waitMs: 10 } });
    buildServer({ features: [], once: false });
    // @ts-expect-error `false` stands alone
    buildServer({ features: [], once: { key: false } });
    // @ts-expect-error no other option
    buildServer({ features: [], once: { wait: 10 } });
  });

  test("a declaration that returns nothing is a feature too", () => {
    const quiet = defineFeature("quiet", () => {});
    expectTypeOf(quiet.name).toBeString();
    buildServer({ features: [quiet] });
    const features = [quiet];
    features.push(defineFeature("other", () => {}));
    // @ts-expect-error not made by defineFeature
    buildServer({ features: [{ name: "fake" }] });
  });

  test("unknown options of a server do not compile", () => {
    // @ts-expect-error features are missing
    buildServer({});
    // @ts-expect-error no such option
    buildServer({ features: [], feature: [] });
    // @ts-expect-error no such environment
    buildServer({ features: [], environment: "staging" });
  });
});

describe("tables", () => {
  test("a table's handle accepts only the names of its declared indexes", () => {
    const files = r.table("files", {
      partitionKey: "pk",
      sortKey: "sk",
      indexes: {
        byOwner: { partitionKey: "owner", sortKey: "createdAt" },
        byState: { partitionKey: "state", project: ["size"] },
      },
      tenant: false,
    });
    expectTypeOf(files).toEqualTypeOf<TableHandle<"byOwner" | "byState">>();
    expectTypeOf(files.index("byOwner")).toBeString();
    // @ts-expect-error no such index
    files.index("byName");
    // A function that accepts any table accepts one with indexes.
    expectTypeOf(files).toExtend<TableHandle>();
    expectTypeOf(files).not.toExtend<TableHandle<"byName">>();
  });

  test("a table without indexes does not accept the name of one", () => {
    const plain = r.table("plain", { partitionKey: "pk", tenant: false });
    expectTypeOf(plain).toEqualTypeOf<TableHandle>();
    expectTypeOf(plain).not.toExtend<TableHandle<"byOwner">>();
    // @ts-expect-error there is none
    plain.index("byOwner");
  });

  test("only a table with tenants makes keys, which have its own attributes", () => {
    const ctx = { user: { tenantId: "acme" } };
    const files = r.table("files", {
      partitionKey: "pk",
      sortKey: "sk",
      tenant: true,
      indexes: { byOwner: { partitionKey: "owner" } },
    });
    expectTypeOf(files.key(ctx, "a")).toEqualTypeOf<{ readonly pk: string }>();
    expectTypeOf(files.key(ctx, "a", "b")).toEqualTypeOf<{
      readonly pk: string;
      readonly sk: string;
    }>();
    expectTypeOf(files.value(ctx, "a")).toBeString();
    expectTypeOf(files.index).parameter(0).toEqualTypeOf<"byOwner">();
    const notes = r.table("notes", { partitionKey: "id", tenant: true });
    expectTypeOf(notes.key(ctx, "a")).toEqualTypeOf<{ readonly id: string }>();
    const plain = r.table("plain", { partitionKey: "id", tenant: false });
    // @ts-expect-error it has no tenants
    plain.key;
  });

  test("every table is read in pages", async () => {
    const files = r.table("files", {
      partitionKey: "pk",
      sortKey: "sk",
      tenant: true,
      indexes: { byOwner: { partitionKey: "owner" } },
    });
    const plain = r.table("plain", { partitionKey: "pk", tenant: false });
    expectTypeOf(() =>
      files.page(ctx, { partition: "a", index: "byOwner", limit: 10 }),
    ).returns.resolves.toEqualTypeOf<TablePage>();
    const { items, cursor } = await plain.page({} as QueryContext, { partition: "a", limit: 10 });
    expectTypeOf(items).toEqualTypeOf<readonly Readonly<Record<string, unknown>>[]>();
    expectTypeOf(cursor).toEqualTypeOf<string | undefined>();
    // The cursor of an input may be absent.
    plain.page(ctx, { partition: "a", limit: 10, cursor, descending: true, beginsWith: "x" });
    // @ts-expect-error a limit is missing
    plain.page(ctx, { partition: "a" });
    // @ts-expect-error no such index
    files.page(ctx, { partition: "a", index: "byName", limit: 10 });
    // @ts-expect-error it has no index
    plain.page(ctx, { partition: "a", index: "byOwner", limit: 10 });
    // @ts-expect-error no database
    plain.page({ user: {} }, { partition: "a", limit: 10 });
  });

  test("unknown options of a table or an index do not compile, nor does an index without keys", () => {
    // @ts-expect-error no such option
    r.table("files", { partitionKey: "pk", sort: "sk", tenant: false });
    r.table("files", {
      partitionKey: "pk",
      // @ts-expect-error no such option of an index
      indexes: { byOwner: { partitionKey: "owner", projekt: [] } },
      tenant: false,
    });
    // @ts-expect-error an index without a key
    r.table("files", { partitionKey: "pk", indexes: { byOwner: {} }, tenant: false });
    // @ts-expect-error whether it has tenants is missing
    r.table("files", { partitionKey: "pk" });
  });
});

test("a schedule has an expression and a handler, and no other options", () => {
  r.schedule("report.nightly", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    missed: "skip",
    handler: async (scheduled, { at }) => {
      expectTypeOf(scheduled).toEqualTypeOf<PipelineContext>();
      expectTypeOf(at).toEqualTypeOf<Date>();
    },
  });
  r.schedule("report.nightly", {
    cron: "0 3 * * *",
    // @ts-expect-error missed is once or skip
    missed: "twice",
    handler: async () => undefined,
  });
  // @ts-expect-error no handler
  r.schedule("report.nightly", { cron: "0 3 * * *" });
  // @ts-expect-error no such option
  r.schedule("report.nightly", { cron: "0 3 * * *", handler: async () => undefined, every: 5 });
});

describe("handles", () => {
  const config = r.config({
    keys: {
      limit: createTenantConfig("number", { default: 10 }),
      order: createUserConfig("select", {
        options: ["newest", "name"],
        default: "newest",
        allowPerRequest: true,
      }),
      on: createSystemConfig("boolean", { default: false }),
      quota: createTenantConfig("number", { computed: async () => 5 }),
      region: createTenantConfig("text", {}),
      mode: createTenantConfig("select", { options: ["fast", "safe"] }),
    },
  });

  test("each key has a handle of its value's type", () => {
    expectTypeOf(config.limit).toEqualTypeOf<ConfigKeyHandle<number>>();
    expectTypeOf(config.order).toEqualTypeOf<ConfigKeyHandle<"newest" | "name">>();
    expectTypeOf(config.on).toEqualTypeOf<ConfigKeyHandle<boolean>>();
    expectTypeOf(config.quota).toEqualTypeOf<ConfigKeyHandle<number>>();
    // @ts-expect-error no such key
    config.limits;
  });

  test("a key without a default may be undefined", () => {
    expectTypeOf(config.region).toEqualTypeOf<ConfigKeyHandle<string | undefined>>();
    expectTypeOf(config.mode).toEqualTypeOf<ConfigKeyHandle<"fast" | "safe" | undefined>>();
  });

  test("ctx.config and resolveConfigOrParam give the handle's type", () => {
    expectTypeOf(() => ctx.config(config.limit)).returns.resolves.toEqualTypeOf<number>();
    expectTypeOf(() => ctx.config(config.region)).returns.resolves.toEqualTypeOf<
      string | undefined
    >();
    expectTypeOf(() => ctx.config(config.mode)).returns.resolves.toEqualTypeOf<
      "fast" | "safe" | undefined
    >();
    expectTypeOf(() => resolveConfigOrParam(ctx, config.order, "x")).returns.resolves.toEqualTypeOf<
      "newest" | "name"
    >();
    // @ts-expect-error an identifier is no handle
    ctx.config("files:config:limit");
  });

  test("handles are read-only, and only declarations are keys", () => {
    // @ts-expect-error read-only
    config.limit = config.quota;
    // @ts-expect-error read-only
    config.limit.id = "other";
    // @ts-expect-error a literal is no declaration
    r.config({ keys: { raw: { type: "number", default: 1 } } });
  });
});

describe("ctx.query", () => {
  test("input and output have the types of the augmented interface", () => {
    expectTypeOf(() =>
      ctx.query("typed.plan.current", { at: new Date() }),
    ).returns.resolves.toEqualTypeOf<{
      plan: "free" | "pro";
      seats?: number | undefined;
    }>();
    expectTypeOf(() =>
      ctx.query("typed.seat.count", { team: "a" }),
    ).returns.resolves.toEqualTypeOf<{ count: number }>();
  });

  test("an unknown name, or the wrong input, does not compile", () => {
    // @ts-expect-error no such query
    ctx.query("typed.plan.none", {});
    // @ts-expect-error the input is missing
    ctx.query("typed.seat.count");
    // @ts-expect-error the team is missing
    ctx.query("typed.seat.count", {});
    // @ts-expect-error a number for a text
    ctx.query("typed.seat.count", { team: 1 });
    // @ts-expect-error the feature's name is missing
    ctx.query("seat.count", { team: "a" });
  });

  test("a query accepts its schema's input, before transforms", () => {
    const width = z.object({ width: z.string().transform(Number) });
    expectTypeOf<Query<typeof width, typeof count>["input"]>().toEqualTypeOf<{ width: string }>();
    expectTypeOf<Query<typeof width, typeof count>["output"]>().toEqualTypeOf<{ count: number }>();
  });

  test("a query returns its schema's output for the result", () => {
    const made = z.object({ at: z.date().transform(String), visits: z.number().default(0) });
    expectTypeOf<Query<typeof count, typeof made>["output"]>().toEqualTypeOf<{
      at: string;
      visits: number;
    }>();
    expectTypeOf<Write<typeof count, typeof made>["output"]>().toEqualTypeOf<{
      at: string;
      visits: number;
    }>();
  });
});

describe("handlers", () => {
  test("a handler gets a ctx, and the input that its schema gives", () => {
    r.query("item.show", {
      input: z.object({ id: z.string(), page: z.string().transform(Number).optional() }),
      handler: async (given, input) => {
        expectTypeOf(given).toEqualTypeOf<QueryContext>();
        expectTypeOf(input).toEqualTypeOf<{ id: string; page?: number | undefined }>();
        return {};
      },
    });
    r.write("item.create", {
      input: z.object({ name: z.string() }),
      handler: async (given, input) => {
        expectTypeOf(given).toEqualTypeOf<PipelineContext>();
        expectTypeOf(input.name).toBeString();
        // @ts-expect-error no such field
        input.title;
      },
    });
  });

  test("the literals of a result are not widened", () => {
    r.query("plan.current", { output: planOutput, handler: async () => ({ plan: "pro" }) });
    r.query("plan.now", { output: planOutput, handler: () => ({ plan: "free", seats: 1 }) });
    r.query("plan.either", {
      output: planOutput,
      handler: async ({ user }) => ({ plan: user.tenantId === "acme" ? "pro" : "free" }),
    });
    r.write("plan.change", {
      output: planOutput,
      handler: async () => reply({ plan: "pro" }, { status: 201 }),
    });
  });

  test("a result that does not fit the output does not compile", () => {
    // @ts-expect-error no such plan
    r.query("plan.current", { output: planOutput, handler: async () => ({ plan: "gold" }) });
    // @ts-expect-error a number for a text
    r.query("plan.current", { output: planOutput, handler: () => ({ plan: 1 }) });
    // @ts-expect-error plan is missing
    r.query("plan.current", { output: planOutput, handler: async () => ({}) });
    // @ts-expect-error nothing is returned
    r.write("plan.change", { output: planOutput, handler: async () => {} });
    // @ts-expect-error no such plan, in a reply
    r.write("plan.change", { output: planOutput, handler: async () => reply({ plan: "gold" }) });
  });

  test("a handler returns the input of the output schema, before transforms", () => {
    const output = z.object({ at: z.date().transform(String), visits: z.number().default(0) });
    r.query("item.seen", { output, handler: async () => ({ at: new Date() }) });
    r.write("item.see", {
      output,
      errors: { out_of_stock: 409 },
      handler: (ctx) => ctx.commit([], { at: new Date(), visits: 1 }),
    });
    // @ts-expect-error a text, as it is sent
    r.query("item.seen", { output, handler: async () => ({ at: "now", visits: 1 }) });
    r.query("item.seen", {
      output,
      // @ts-expect-error a text for a number
      errors: { out_of_stock: "409" },
      handler: async () => ({ at: new Date() }),
    });
  });

  test("a web Response may be returned regardless of the output", () => {
    r.query("plan.current", {
      output: planOutput,
      handler: async () => Response.json({ plan: "pro" }),
    });
    r.query("plan.moved", {
      output: planOutput,
      handler: () => Response.redirect("https://example.com/plan", 302),
    });
    r.write("plan.change", {
      output: planOutput,
      handler: async ({ user }) =>
        user.id === undefined ? new Response(null, { status: 304 }) : { plan: "pro" },
    });
    r.query("plan.any", { handler: async () => new Response("any") });
    r.query("plan.wrong", {
      output: planOutput,
      // @ts-expect-error no such plan, beside a Response
      handler: ({ user }) => (user.id ? new Response("") : { plan: "gold" }),
    });
  });

  test("without an output schema anything may be returned", () => {
    r.query("item.any", { handler: async () => ({ at: new Date() }) });
    r.query("item.nothing", { handler: async () => undefined });
    const csv = { headers: { "content-type": "text/csv" } };
    r.query("item.rows", { handler: async () => reply((async function* () {})(), csv) });
    r.query("item.file", { handler: async () => reply(Readable.from(["a"]), csv) });
    r.query("item.web", { handler: async () => reply(new Response("a").body, csv) });
    r.write("item.text", {
      handler: async () => reply("text", { headers: { "content-type": "text/plain" } }),
    });
  });

  test("a handler is a function", () => {
    // @ts-expect-error the handler is missing
    r.query("item.none", {});
    // @ts-expect-error a value, not a function
    r.query("item.value", { handler: 1 });
    // @ts-expect-error a schema is more than an object
    r.query("item.schema", { input: {}, handler: async () => 1 });
  });
});

describe("routes", () => {
  test("a route comes with an access rule, and an access rule with a route", () => {
    r.query("item.show", {
      route: "GET /items/:id",
      access: access.authenticated,
      handler: async () => 1,
    });
    r.write("item.create", {
      route: "POST /items",
      access: access.roles("editor"),
      handler: async () => 1,
    });
    // @ts-expect-error access is missing
    r.query("item.show", { route: "GET /items/:id", handler: async () => 1 });
    // @ts-expect-error access is missing
    r.write("item.create", { route: "POST /items", handler: async () => 1 });
    // @ts-expect-error a rule for no route
    r.query("item.show", { access: access.everyone, handler: async () => 1 });
    // @ts-expect-error a name is no rule
    r.query("item.show", { route: "GET /items", access: "admin", handler: async () => 1 });
    // @ts-expect-error a factory is no rule
    r.query("item.show", { route: "GET /items", access: access.roles, handler: async () => 1 });
  });

  test("a write with a route may name its body; a query never does", () => {
    r.write("item.upload", {
      route: "POST /items",
      access: access.everyone,
      body: "bytes",
      handler: async () => 1,
    });
    r.write("item.upload", {
      route: "POST /items",
      access: access.everyone,
      // @ts-expect-error no such kind
      body: "xml",
      handler: async () => 1,
    });
    // @ts-expect-error a body without a route
    r.write("item.upload", { body: "json", handler: async () => 1 });
    r.query("item.show", {
      route: "GET /items",
      access: access.everyone,
      // @ts-expect-error a query has no body
      body: "json",
      handler: async () => 1,
    });
  });

  test("a reply carries its body's type, a status, headers and cookies", () => {
    expectTypeOf(reply({ id: 1 }, { status: 201 })).toExtend<Reply<{ readonly id: 1 }>>();
    expectTypeOf(reply({ id: 1 }).body.id).toEqualTypeOf<1>();
    reply(undefined, {
      status: 204,
      headers: { etag: '"1"' },
      cookies: { seen: { value: "1", sameSite: "Strict", maxAgeSeconds: 60 } },
    });
    // @ts-expect-error a text for a number
    reply({}, { status: "201" });
    // @ts-expect-error a number for a text
    reply({}, { headers: { age: 1 } });
    // @ts-expect-error a cookie is more than its value
    reply({}, { cookies: { seen: "1" } });
    // @ts-expect-error no such value
    reply({}, { cookies: { seen: { value: "1", sameSite: "Loose" } } });
  });
});

describe("ctx", () => {
  test("the caller may be anonymous, and the signal and the request may be absent", () => {
    expectTypeOf(ctx.user).toEqualTypeOf<User>();
    expectTypeOf(ctx.user.tenantId).toEqualTypeOf<string | undefined>();
    expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal | undefined>();
    expectTypeOf(ctx.request?.rawBody).toEqualTypeOf<Uint8Array | undefined>();
  });

  test("every member is read-only", () => {
    const other = {} as PipelineContext;
    // @ts-expect-error read-only
    ctx.requestId = "other";
    // @ts-expect-error read-only
    ctx.user = other.user;
    // @ts-expect-error read-only
    ctx.log = other.log;
    // @ts-expect-error read-only
    ctx.db = other.db;
    // @ts-expect-error read-only
    ctx.config = other.config;
    // @ts-expect-error read-only
    ctx.user.tenantId = "other";
    // @ts-expect-error read-only
    ctx.user.roles.push("admin");
  });
});

test("a run without a request has a reason, and the result of its function", () => {
  const server = {} as Server;
  expectTypeOf(() =>
    server.run({ reason: "a count" }, async (ctx) => ctx.requestId),
  ).returns.resolves.toBeString();
  expectTypeOf(() =>
    server.run({ reason: "a count", tenantId: "acme", userId: "ann" }, () => 7),
  ).returns.resolves.toBeNumber();
  const work = async () => ({ at: new Date(0), ids: ["a"] });
  expectTypeOf(() => server.run({ reason: "a count" }, work)).returns.resolves.toEqualTypeOf<{
    at: Date;
    ids: string[];
  }>();
  // A repeated run returns the stored result, so the first one does too.
  const repeatable = { reason: "a count", requestId: "count-1" };
  expectTypeOf(() => server.run(repeatable, work)).returns.resolves.toEqualTypeOf<{
    readonly at: string;
    readonly ids: readonly string[];
  }>();
  expectTypeOf(() => server.run({} as RunOptions, work)).returns.resolves.toHaveProperty("at");
  // @ts-expect-error a string, not a date
  void (async () => (await server.run({} as RunOptions, work)).at.getTime());
  // @ts-expect-error no reason
  void (() => server.run({ tenantId: "acme" }, () => 7));
  // @ts-expect-error none of the options
  void (() => server.run({ reason: "a count", tenant: "acme" }, () => 7));
});
