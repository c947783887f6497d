import {
  buildServer,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type FeatureBuilder,
  type Query,
  reply,
  type Write,
} from "keelson";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { OverridesOf } from "../../src/parts/config/declare/app-overrides.ts";

const place = z.object({ shelf: z.string(), row: z.string().transform(Number) });
const book = z.object({ title: z.string(), pages: z.number().optional() });
const lend = z.object({ title: z.string() });
const written = z.object({
  title: z.date().transform(String),
  pages: z.string().transform(Number),
});

declare module "keelson" {
  interface Queries {
    "typed-library.book.find": Query<typeof place, typeof book>;
  }
  interface Writes {
    "typed-library.book.add": Write<typeof place, typeof book>;
  }
  interface Jobs {
    "typed-library.book.lend": z.input<typeof lend>;
  }
  interface Channels {
    "typed-card": { to: string; text?: string | undefined };
  }
}

const r = {} as FeatureBuilder<"typed-library">;

describe("an entry of Queries", () => {
  const handler = async () => ({ title: "Emma" });

  test("is a query with these schemas, or with schemas that take and give as much", () => {
    r.query("book.find", { input: place, output: book, handler });
    r.query("book.find", {
      input: z.object({ shelf: z.string().nullable() }),
      output: lend,
      handler,
    });
    r.query("book.find", { output: book, handler });
    r.query("book.find", { input: place, handler: async () => reply({ title: "Emma" }) });
    r.query("book.find", {
      input: place,
      output: written,
      handler: () => ({ title: new Date(), pages: "1" }),
    });
    r.query("book.other", {
      input: lend,
      output: z.object({ at: z.number() }),
      handler: () => ({ at: 1 }),
    });
    ({}) as FeatureBuilder<"typed-archive"> satisfies FeatureBuilder;
    r satisfies FeatureBuilder;
  });

  test("that contradicts the schemas or the result does not compile", () => {
    // @ts-expect-error a number for a text
    r.query("book.find", { input: z.object({ shelf: z.number() }), output: book, handler });
    // @ts-expect-error an input that nobody gives
    r.query("book.find", { input: place.extend({ floor: z.number() }), output: book, handler });
    r.query("book.find", {
      input: place,
      // @ts-expect-error the title is missing
      output: z.object({ pages: z.number() }),
      handler: () => ({ pages: 1 }),
    });
    // @ts-expect-error the title may be missing
    r.query("book.find", { input: place, output: book.partial(), handler });
    r.query("book.find", {
      input: place,
      // @ts-expect-error the title is sent as a number
      output: z.object({ title: z.string().transform(Number) }),
      handler,
    });
    // @ts-expect-error the title is missing, and no schema says more than the entry
    r.query("book.find", { input: place, handler: async () => ({ pages: 1 }) });
  });

  test("applies only in features of that name", () => {
    const input = z.object({ shelf: z.number() });
    ({}) as FeatureBuilder<"typed-archive">;
    defineFeature("typed-archive", ({ query }) =>
      query("book.find", { input, handler: async () => ({}) }),
    );
    defineFeature("typed-library", ({ query }) =>
      // @ts-expect-error a number for a text
      query("book.find", { input, handler: async () => ({}) }),
    );
  });
});

describe("an entry of Writes", () => {
  const handler = async () => ({ title: "Emma" });

  test("is a write with these schemas, or with schemas that take and give as much", () => {
    r.write("book.add", { input: place, output: book, handler });
    r.write("book.add", {
      input: place.extend({ row: z.any().transform(Number) }),
      output: lend,
      handler,
    });
    r.write("book.add", { output: book, handler });
    r.write("book.add", { input: place, handler: async () => reply({ title: "Emma" }) });
    r.write("book.other", {
      input: lend,
      output: z.object({ at: z.number() }),
      handler: () => ({ at: 1 }),
    });
  });

  test("that contradicts the schemas or the result does not compile", () => {
    // @ts-expect-error a number for a text
    r.write("book.add", { input: place.extend({ shelf: z.number() }), output: book, handler });
    // @ts-expect-error a text where hooks are given a number
    r.write("book.add", { input: place.extend({ row: z.string() }), output: book, handler });
    // @ts-expect-error an input that no hook returns
    r.write("book.add", { input: place.extend({ floor: z.number() }), output: book, handler });
    // @ts-expect-error the title may be missing
    r.write("book.add", { input: place, output: book.partial(), handler });
    // @ts-expect-error the title is missing, and no schema says more than the entry
    r.write("book.add", { input: place, handler: async () => ({ pages: 1 }) });
  });

  test("types the hooks of the write, from whatever feature", () => {
    const { hook } = {} as FeatureBuilder<"typed-archive">;
    hook("typed-library.book.add", {
      before: (_ctx, input) => {
        expectTypeOf(input).toEqualTypeOf<{ shelf: string; row: number }>();
        return { shelf: input.shelf, row: "7" };
      },
      commit: (_ctx, input, result) => {
        expectTypeOf(input.row).toEqualTypeOf<number>();
        expectTypeOf(result).toEqualTypeOf<{ title: string; pages?: number | undefined }>();
        return [{ Put: { TableName: "t", Item: { pk: result.title } } }];
      },
      after: async (ctx, input, result) => ctx.log.info(result.title, input),
    });
    hook("typed-library.book.add", { before: () => undefined, after: () => {} });
    hook("typed-library.book.add", { before: async () => {} });
    hook("typed-library.book.add", { before: (_ctx, input) => ({ ...input, row: "7" }) });
    hook("typed-library.book.add", { before: (_ctx, input) => ({ ...input }) });
  });

  test("lets no hook compile that does not fit it", () => {
    // @ts-expect-error no such write
    r.hook("typed-library.book.ad", { after: () => {} });
    // @ts-expect-error a query
    r.hook("typed-library.book.find", { after: () => {} });
    // @ts-expect-error neither as the schema takes it, nor as it gives it
    r.hook("typed-library.book.add", { before: (_ctx, input) => ({ ...input, row: true }) });
    // @ts-expect-error no list
    r.hook("typed-library.book.add", { commit: () => ({ Put: { TableName: "t", Item: {} } }) });
    // @ts-expect-error items are returned
    r.hook("typed-library.book.add", { before: async (ctx) => void (await ctx.commit([], {})) });
    // @ts-expect-error nothing is published any more
    r.hook("typed-library.book.add", { after: async (ctx) => ctx.publish("book.added", {}) });
  });
});

describe("an entry of Jobs or Channels", () => {
  const handler = async () => undefined;

  test("is a job, or a channel, whose schema takes it", () => {
    r.job("book.lend", { input: lend, handler });
    r.job("book.lend", { input: lend.partial(), handler });
    r.job("book.return", { input: z.object({ at: z.number() }), handler });
    r.channel("typed-card", {
      input: z.object({ to: z.string(), text: z.string().optional() }),
      send: handler,
    });
    r.channel("typed-other", { input: z.object({ at: z.number() }), send: handler });
  });

  test("that contradicts the schema does not compile", () => {
    // @ts-expect-error a number for a text
    r.job("book.lend", { input: z.object({ title: z.number() }), handler });
    // @ts-expect-error more than is enqueued
    r.job("book.lend", { input: lend.extend({ days: z.number() }), handler });
    r.channel("typed-card", {
      // @ts-expect-error the text may be missing
      input: z.object({ to: z.string(), text: z.string() }),
      send: handler,
    });
  });
});

describe("results", () => {
  const list = z.object({
    items: z.array(z.object({ id: z.string() })),
    tags: z.record(z.string(), z.array(z.string())),
  });

  test("may be literals, lists too", () => {
    r.query("list.a", { output: list, handler: async () => ({ items: [], tags: {} }) });
    r.query("list.b", {
      output: list,
      handler: () => reply({ items: [{ id: "1" }], tags: { a: ["b"] } }),
    });
    r.query("list.c", {
      output: list,
      handler: (ctx) => (ctx.signal ? reply({ items: [], tags: {} }) : { items: [], tags: {} }),
    });
    r.write("list.d", { output: z.array(z.string()), handler: async () => ["a"] });
    r.write("list.e", {
      output: list,
      handler: async (ctx) => ctx.commit([], reply({ items: [{ id: "1" }], tags: {} })),
    });
    r.write("list.f", { output: list, handler: async () => Promise.reject(new Error("always")) });
    r.query("list.g", {
      output: list,
      handler: (ctx) => (ctx.signal ? new Response("x") : { items: [], tags: {} }),
    });
  });

  test("that do not fit do not compile, wherever they are", () => {
    // @ts-expect-error a number for a text, in a list
    r.query("list.a", { output: list, handler: async () => ({ items: [{ id: 1 }], tags: {} }) });
    r.query("list.b", {
      output: list,
      // @ts-expect-error a text for a list
      handler: async () => reply({ items: [], tags: { a: "b" } }),
    });
    r.query("list.c", {
      output: list,
      // @ts-expect-error one of two results
      handler: (ctx) => (ctx.signal ? reply({ items: [], tags: {} }) : { items: [] }),
    });
    r.query("list.g", {
      output: list,
      // @ts-expect-error beside a web Response
      handler: (ctx) => (ctx.signal ? new Response("x") : { items: [] }),
    });
    // @ts-expect-error numbers for texts
    r.write("list.d", { output: z.array(z.string()), handler: async () => [1] });
  });
});

describe("overrides of buildServer", () => {
  const files = defineFeature("files", (builder) => ({
    config: builder.config({
      keys: {
        maxUploadSizeMb: createTenantConfig("number", { default: 1 }),
        order: createUserConfig("select", { options: ["newest", "name"], default: "name" }),
        maxURLLength: createTenantConfig("number", {}),
        x509Chain: createTenantConfig("text", { default: "" }),
        aB: createTenantConfig("boolean", { default: true }),
        PDFs: createTenantConfig("boolean", { default: true }),
        HTML: createTenantConfig("boolean", { default: true }),
      },
    }),
    accept: [".pdf"],
  }));
  const quiet = defineFeature("quiet", () => {});

  test("are the identifiers of the keys whose handles features return, each with its value", () => {
    type Known<Overrides> = {
      [Id in keyof Overrides as string extends Id ? never : Id]: Overrides[Id];
    };
    expectTypeOf<Known<OverridesOf<readonly [typeof files, typeof quiet]>>>().toEqualTypeOf<{
      readonly "files:config:max-upload-size-mb"?: number;
      readonly "files:config:order"?: "newest" | "name";
      readonly "files:config:max-url-length"?: number;
      readonly "files:config:x509-chain"?: string;
      readonly "files:config:a-b"?: boolean;
      readonly "files:config:pd-fs"?: boolean;
      readonly "files:config:html"?: boolean;
    }>();
  });

  test("also accept names that the types do not know, but not values of another type", () => {
    buildServer({
      features: [quiet, files],
      config: { "files:config:order": "newest", "quiet:config:any": 1 },
    });
    const some = [files, quiet];
    buildServer({ features: some, config: { "files:config:max-upload-size-mb": 5 } });
    buildServer({ features: [], config: { "quiet:config:any": true } });
    const overrides: Record<string, unknown> = {};
    buildServer({ features: [files], config: overrides });
    // @ts-expect-error none of the options
    buildServer({ features: [quiet, files], config: { "files:config:order": "oldest" } });
    // @ts-expect-error a text for a number
    buildServer({ features: [files], config: { "files:config:max-upload-size-mb": "5" } });
  });
});
