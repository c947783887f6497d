// One server in every version: its rows and messages are kept, and the other versions read them.
import { createHash, randomUUID } from "node:crypto";
import type { FeatureBuilder, MessageProof, PipelineContext } from "keelson";
import { z } from "zod";
import type { Version } from "./version.ts";
import type { World } from "./world.ts";

const thing = z.object({ name: z.string(), filling: z.string().optional() });
const work = z.object({ name: z.string(), order: z.string().optional() });

declare module "../../src/base/types/names.ts" {
  interface Events {
    "thing.kept": z.output<typeof thing>;
  }
  interface Jobs {
    "kept.thing.work": z.input<typeof work>;
    "kept.thing.tidy": z.input<typeof work>;
  }
  interface Channels {
    pager: { name: string };
  }
}

/** The keys of a server: with the earlier ring, and after its key was retired. */
export const keyRings = ring();

/** Differences of a server from the others of its version. */
export interface Variant {
  readonly keyRing: keyof typeof keyRings;
  /** Time for which a repeat waits for the duplicate in flight, in milliseconds. */
  readonly waitMs: number;
  /** Only in this version: earlier ones do not have proofs. */
  readonly proof?: MessageProof;
  /** Whether secrets are sealed for the versions of their rows, which 0.1.0 cannot. */
  readonly bindVersion?: boolean;
}

/** The server of the tests, made with the modules of a version. */
export function keptServer(
  { name: version, keelson, operators }: Version,
  world: World,
  { keyRing, waitMs, proof, bindVersion }: Variant,
) {
  const {
    access,
    buildServer,
    createSystemConfig,
    createTenantConfig,
    createUserConfig,
    defineFeature,
    reply,
  } = keelson;
  const enter = async (what: string, name: string) => {
    world.runs.push(`${version} ${what} ${name}`);
    await world.gate(name);
  };

  const kept = defineFeature("kept", (r) => {
    const config = r.config({
      keys: {
        limit: createUserConfig("number", { default: 10, bounds: { min: 1, max: 100 } }),
        theme: createTenantConfig("text", { default: "plain" }),
        flag: createTenantConfig("boolean", { default: false }),
        colour: createTenantConfig("select", { default: "red", options: ["red", "green"] }),
        mode: createSystemConfig("text", { default: "none" }),
        token: createTenantConfig("text", { encrypted: true }),
        hookSecret: createTenantConfig("text", { encrypted: true }),
      },
    });
    const { table, on } = formsOf(version, r);
    const effects = table("effects", { partitionKey: "pk", tenant: false });
    table("calls", { partitionKey: "id", tenant: false });
    table("sorted", { partitionKey: "pk", sortKey: "sk", tenant: false });
    const add = (ctx: PipelineContext, what: string, name: string) => ({
      Update: {
        TableName: effects.name,
        Key: { pk: `${ctx.user.tenantId} ${what} ${name}` },
        UpdateExpression: "ADD amount :one",
        ExpressionAttributeValues: { ":one": 1 },
      },
    });

    const answer = (kind: string) => {
      const type = contentTypes[kind];
      const headers = {
        location: `/answers/${kind}`,
        etag: '"1"',
        "x-kept": "kept",
        "x-anew": randomUUID(),
        ...(type === undefined ? {} : { "content-type": type }),
      };
      return reply(bodies[kind]?.(), { ...(kind === "none" ? {} : { status: 201 }), headers });
    };
    r.write("answer.make", {
      route: "POST /answers/:kind",
      access: access.authenticated,
      replayHeaders: ["x-kept"],
      handler: async (_ctx, input) => {
        const { kind } = input as { kind: string };
        await enter("answer", kind);
        return answer(kind);
      },
    });
    r.write("answer.commit", {
      route: "POST /commits/:name",
      access: access.authenticated,
      input: z.object({ name: z.string(), other: z.string().optional() }),
      handler: async (ctx, { name }) => {
        await enter("commit", name);
        return ctx.commit([add(ctx, "commit", name)], { name, by: version, id: randomUUID() });
      },
    });
    r.write("answer.open", {
      route: "POST /open",
      access: access.everyone,
      handler: async () => ({ id: randomUUID() }),
    });
    r.write("answer.secret", {
      route: "POST /secrets",
      access: access.authenticated,
      replay: "encrypted",
      handler: async () => ({ id: randomUUID() }),
    });
    r.write("answer.typed", {
      route: "POST /typed",
      access: access.authenticated,
      input: typed,
      handler: async () => ({ id: randomUUID() }),
    });
    for (const body of ["bytes", "form", "text"] as const) {
      r.write(`answer.${body}`, {
        route: `POST /bodies/${body}`,
        access: access.authenticated,
        body,
        handler: async () => ({ id: randomUUID() }),
      });
    }

    r.query("config.values", {
      route: "GET /values",
      access: access.authenticated,
      handler: async (ctx) => ({
        limit: await ctx.config(config.limit),
        theme: await ctx.config(config.theme),
        flag: await ctx.config(config.flag),
        colour: await ctx.config(config.colour),
        mode: await ctx.config(config.mode),
      }),
    });
    r.query("config.token", {
      route: "GET /token",
      access: access.authenticated,
      handler: async (ctx) => ({ token: await ctx.config(config.token) }),
    });
    r.write("keys.rotate", {
      route: "POST /rotations",
      access: access.systemAdmin,
      handler: async (ctx, input) => {
        const { from, stops } = input as { from?: string; stops?: boolean };
        let next: string | undefined;
        const onProgress = (progress: { readonly next?: string }) => {
          next ??= progress.next;
          if (stops) throw new keelson.PermanentError("stopped after the first page");
        };
        const done = await operators
          .rotateConfigKeys(ctx, { from, onProgress })
          .catch(() => undefined);
        return { next, locked: done?.locked, isWhole: done !== undefined };
      },
    });

    r.event("thing.kept", thing);
    r.write("thing.make", {
      route: "POST /things/:name",
      access: access.authenticated,
      input: thing,
      handler: async (ctx, { name, filling }) => {
        await ctx.publish("thing.kept", { name, ...(filling === undefined ? {} : { filling }) });
        return ctx.commit([add(ctx, "made", name)], { name });
      },
    });
    on("thing.kept", {
      name: "count",
      handler: async (ctx, { payload: { name } }) => {
        await enter("count", name);
        await ctx.commit([add(ctx, "counted", name)], undefined);
      },
    });
    on("thing.kept", {
      name: "follow",
      handler: async (ctx, { payload: { name } }) => {
        await enter("follow", name);
        await ctx.enqueue("kept.thing.work", { name });
        if (world.broken.has(name)) throw new Error(`${name} is broken`);
        await ctx.commit([add(ctx, "followed", name)], undefined);
      },
    });
    r.write("thing.ask", {
      route: "POST /jobs/:name",
      access: access.authenticated,
      input: work,
      handler: async (ctx, job) => ctx.enqueue("kept.thing.work", job),
    });
    r.write("thing.tidy-up", {
      route: "POST /tidying/:name",
      access: access.authenticated,
      input: work,
      handler: async (ctx, { name }) => ctx.enqueue("kept.thing.tidy", { name }),
    });
    r.job("thing.tidy", {
      input: work,
      handler: async (ctx, { name }) => {
        await enter("tidy", name);
        await ctx.commit([add(ctx, "tidied", name)], undefined);
      },
    });
    r.job("thing.work", {
      input: work,
      order: ({ name, order }) => order ?? name,
      handler: async (ctx, { name }) => {
        await enter("work", name);
        await ctx.commit([add(ctx, "worked", name)], undefined);
      },
    });
    r.write("thing.tell", {
      route: "POST /deliveries/:name",
      access: access.authenticated,
      input: z.object({ name: z.string(), url: z.string().optional() }),
      handler: async (ctx, { name, url }) => {
        const key = { key: name };
        if (url === undefined) await ctx.delivery.send("pager", { name }, key);
        else await ctx.delivery.send("webhook", { url, body: { name } }, key);
      },
    });
    r.channel("pager", {
      input: z.object({ name: z.string() }),
      send: async (ctx, { name }, { id }) => {
        await enter("page", `${name} ${id}`);
        await ctx.commit([add(ctx, "paged", name)], undefined);
      },
    });
    return { config };
  });

  return buildServer({
    features: [kept],
    keyRing: {
      parameter: `/kept/${keyRing}`,
      ...(bindVersion === undefined ? {} : { bindVersion }),
    },
    cache: { ttlMs: 0 },
    once: { waitMs },
    ...(proof === undefined ? {} : { messages: { proof } }),
    delivery: {
      webhook: {
        secret: kept.config.hookSecret,
        allowHttp: true,
        allowPrivate: true,
        timeoutMs: 5_000,
      },
    },
  });
}

/** The functions of a builder whose forms differ between versions, in the form of this one. */
function formsOf(version: string, r: FeatureBuilder): Pick<FeatureBuilder, "table" | "on"> {
  if (version !== "0.1.0") return r;
  // Safe casts: 0.1.0 takes tables without `tenant`, and consumers by position.
  const { table, on } = r as unknown as Record<
    "table" | "on",
    (name: unknown, ...more: unknown[]) => never
  >;
  return {
    table: (name, { tenant: _, ...options }) => table(name, options),
    on: (event, { name, handler }) => on(event, name, handler),
  };
}

/** Longer than the window of gzip, so that repetition does not compress, and its stored form exceeds an item. */
const block = Array.from({ length: 800 }, (_, index) =>
  createHash("sha256").update(`${index}`).digest("base64url"),
).join("");

/** A text of half a megabyte, which compresses to more than DynamoDB's items hold. */
export const hugeText = block.repeat(15);

const bodies: Readonly<Record<string, () => unknown>> = {
  small: () => ({ id: randomUUID(), text: "ünï ✓" }),
  compressed: () => ({ id: randomUUID(), text: "again and again ".repeat(200) }),
  parts: () => ({ id: randomUUID(), text: hugeText }),
  text: () => `a text ${randomUUID()} ✓`,
  bytes: () => Uint8Array.from([0, 255, 128, ...Buffer.from(randomUUID())]),
  none: () => undefined,
};

const contentTypes: Readonly<Record<string, string>> = {
  text: "text/plain; charset=utf-8",
  bytes: "image/png",
};

/** A schema's result for plain JSON: every type that a fingerprint covers. */
const typed = z.object({
  when: z.coerce.date(),
  amount: z.coerce.bigint(),
  tags: z.array(z.string()).transform((tags) => new Set(tags)),
  prices: z.record(z.string(), z.number()).transform((prices) => new Map(Object.entries(prices))),
  bytes: z.string().transform((text) => new Uint8Array(Buffer.from(text, "base64"))),
  nested: z.object({ b: z.number(), a: z.array(z.unknown()) }),
});

/** Fixed keys, because kept data is sealed with them. */
function ring() {
  const key = (name: string) =>
    createHash("sha256").update(`a key of the tests: ${name}`).digest("base64");
  return {
    earlier: JSON.stringify({ active: "2025", keys: { 2025: key("2025") } }),
    rotated: JSON.stringify({ active: "2026", keys: { 2025: key("2025"), 2026: key("2026") } }),
  };
}
