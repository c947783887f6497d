import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { z } from "zod";
import {
  access,
  buildServer,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type TenantOf,
} from "../../src/index.ts";
import { measureFootprint } from "./footprint.ts";

/** Secret of the tokens. All processes share it. */
export const secret = "a secret that all processes of the soak share";

export const stepKey = "soak:config:step";
export const mottoKey = "soak:config:motto";

const entry = z.object({ id: z.string().max(100) });

/**
 * Each effect adds 1 to a separate number, which only keelson protects: a write, an event or a job that happened twice
 * leaves a 2.
 */
export const soak = defineFeature("soak", (r) => {
  const anyone = { read: access.authenticated, write: access.authenticated };
  const config = r.config({
    keys: {
      step: createTenantConfig("number", {
        default: 0,
        bounds: { min: 0, max: 1_000_000_000 },
        access: anyone,
      }),
      motto: createTenantConfig("text", { default: "", access: anyone }),
      order: createUserConfig("select", { options: ["newest", "name"], default: "newest" }),
    },
  });
  const table = r.table("soaked", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const added = r.event("entry.added", entry);

  const count = (ctx: TenantOf, kind: string, id: string) => ({
    Update: {
      TableName: table.name,
      Key: table.key(ctx, "soaked", `${kind} ${id}`),
      UpdateExpression: "SET kind = :kind, entry = :entry ADD amount :one",
      ExpressionAttributeValues: { ":kind": kind, ":entry": id, ":one": 1 },
    },
  });

  r.write("entry.add", {
    route: "POST /entries/:id",
    access: access.authenticated,
    input: entry.extend({ text: z.string().max(10_000), isRefused: z.boolean().optional() }),
    handler: async (ctx, { id, text, isRefused = false }) => {
      await ctx.publish(added, { id });
      const absent = {
        TableName: table.name,
        Key: table.key(ctx, "soaked", "nothing"),
        ConditionExpression: "attribute_exists(pk)",
      };
      const condition = isRefused ? [{ ConditionCheck: absent }] : [];
      const answer = { id, tenantId: ctx.user.tenantId, size: text.length, by: process.pid };
      return ctx.commit([count(ctx, "write", id), ...condition], answer);
    },
  });

  r.query("entry.show", {
    route: "GET /entries/:id",
    access: access.authenticated,
    input: entry,
    handler: async (ctx, { id }) => {
      const Key = table.key(ctx, "soaked", `write ${id}`);
      const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
      const { Item } = await ctx.db.send(get);
      return { id, tenantId: ctx.user.tenantId, amount: Number(Item?.["amount"] ?? 0) };
    },
  });

  r.query("setting.show", {
    route: "GET /preferences",
    access: access.authenticated,
    handler: async (ctx) => ({
      step: await ctx.config(config.step),
      motto: await ctx.config(config.motto),
      order: await ctx.config(config.order),
    }),
  });

  r.query("process.measure", {
    route: "GET /footprint",
    access: access.everyone,
    handler: () => measureFootprint(),
  });

  r.on(added, {
    name: "order",
    handler: async (ctx, { payload: { id } }) => {
      await ctx.enqueue(print, { id });
      return ctx.commit([count(ctx, "event", id)], undefined);
    },
  });
  r.on(added, {
    name: "note",
    handler: (ctx, { payload: { id } }) => ctx.commit([count(ctx, "note", id)], undefined),
  });
  const print = r.job("entry.print", {
    input: entry,
    handler: (ctx, { id }) => ctx.commit([count(ctx, "job", id)], undefined),
  });
});

/** Clients repeat writes while the clock steps forward: answers are kept for longer than all steps together. */
export const createServer = () =>
  buildServer({ features: [soak], once: { keepSeconds: 86_400 }, auth: { secret } });
