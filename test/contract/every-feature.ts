import { type } from "arktype";
import * as v from "valibot";
import * as z from "zod";
import * as mini from "zod/mini";
import {
  access,
  buildServer,
  createTenantConfig,
  defineFeature,
  NotFoundError,
  reply,
} from "../../src/index.ts";

const file = z
  .object({ id: z.string(), name: z.string(), sizeMb: z.number(), createdAt: z.date() })
  .meta({ id: "File", description: "A file of a tenant." });
const newFile = z.object({ name: z.string().min(1), sizeMb: z.number().positive() });
const created = z.object({ id: z.string() });

interface Folder {
  readonly name: string;
  readonly folders: readonly Folder[];
}
const folder = z.object({
  name: z.string(),
  get folders(): z.ZodType<readonly Folder[]> {
    return z.array(folder);
  },
});

declare module "../../src/base/types/names.ts" {
  interface Events {
    "vault-file.created": z.output<typeof created>;
  }
  interface Writes {
    "vault.file.create": Write<typeof newFile, typeof file>;
  }
}

/** Each kind of body, of parameter and of answer, each library's schemas, and whatever else a feature declares. */
const files = defineFeature("vault", (r) => {
  const config = r.config({
    keys: {
      maxSizeMb: createTenantConfig("number", {
        default: 10,
        bounds: { min: 1, max: 100 },
        read: access.tenant,
      }),
    },
  });
  r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true });
  r.event("vault-file.created", created, { keep: true });
  r.on("vault-file.created", { name: "log", handler: async (ctx) => ctx.log.info("file.seen") });
  r.job("file.scan", { input: created, handler: async () => undefined });
  r.schedule("file.sweep", { cron: "0 3 * * *", handler: async () => undefined });
  r.channel("vault-pager", { input: z.object({ text: z.string() }), send: async () => undefined });

  r.query("file.list", {
    route: "GET /files",
    access: access.tenant,
    input: z.object({
      order: z.enum(["name", "date"]).default("date"),
      limit: z.coerce.number().int().min(1).max(100).default(20),
      tag: z.union([z.string(), z.array(z.string())]).optional(),
      both: z.array(z.string()).optional(),
    }),
    output: z.object({ items: z.array(file), cursor: z.string().optional() }),
    handler: () => ({ items: [] }),
  });
  r.query("file.show", {
    route: "GET /files/:id",
    access: access.tenant,
    input: z.object({ id: z.string().max(100) }),
    output: file.optional(),
    handler: (_ctx, { id }) => {
      throw new NotFoundError("file", id);
    },
  });
  r.query("file.content", {
    route: "GET /files/:id/content",
    access: access.anyOf(access.admin, access.roles("reader", "editor")),
    status: [200, 302],
    handler: () => reply(new Response("text").body, { headers: { "content-type": "text/plain" } }),
  });
  r.write("file.create", {
    route: "POST /files",
    access: access.roles("editor"),
    status: 201,
    input: newFile,
    output: file,
    handler: async (ctx, { name, sizeMb }) => {
      await ctx.config(config.maxSizeMb);
      return reply(
        { id: "1", name, sizeMb, createdAt: new Date(0) },
        { headers: { location: "/files/1" }, status: 201 },
      );
    },
  });
  r.write("file.replace", {
    route: "PUT /files/:id/content",
    access: access.admin,
    body: "bytes",
    input: z.object({
      id: z.string(),
      name: z.string().optional(),
      body: z.instanceof(Uint8Array),
    }),
    output: z.undefined(),
    handler: () => undefined,
  });
  r.write("file.note", {
    route: "PUT /files/:id/note",
    access: access.authenticated,
    body: "text",
    once: { key: "idempotency-key" },
    input: z.object({ id: z.string(), body: z.string().max(1_000) }),
    output: z.string(),
    handler: (_ctx, { body }) =>
      reply(body, { headers: { "content-type": "text/plain; charset=utf-8" } }),
  });
  r.write("file.rename", {
    route: "PATCH /files/:id",
    access: access.systemAdmin,
    body: "form",
    once: false,
    input: mini.object({
      id: mini.string(),
      name: mini.string(),
      tags: mini.optional(mini.array(mini.string())),
    }),
    output: mini.object({ name: mini.string() }),
    handler: (_ctx, { name }) => ({ name }),
  });
  r.write("file.delete", {
    route: "DELETE /files/:id",
    access: access.allOf(access.tenant, access.roles("editor")),
    input: z.object({ id: z.string(), reason: z.string().optional() }),
    output: z.undefined(),
    handler: () => undefined,
  });
  r.write("file.tag", {
    route: "POST /files/:id/tags",
    access: access.tenant,
    input: z.object({ id: z.string(), body: z.array(z.string()), merge: z.string().optional() }),
    handler: (_ctx, { body }) => body.length,
  });
  r.write("folder.create", {
    route: "POST /folders",
    access: access.tenant,
    input: folder,
    output: folder,
    handler: (_ctx, given) => given,
  });
  r.write("folder.change", {
    route: "PATCH /folders/:folder",
    access: access.tenant,
    input: z.object({
      folder: z.string(),
      name: z.string().max(100).optional(),
      isOpen: z.boolean().optional(),
    }),
    output: z.object({ folder: z.string() }),
    handler: (_ctx, { folder }) => ({ folder }),
  });
  return { config };
});

const money = v.object({
  amount: v.pipe(v.number(), v.minValue(0)),
  currency: v.picklist(["EUR", "USD"]),
});
const card = v.object({ kind: v.literal("card"), number: v.pipe(v.string(), v.regex(/^\d{16}$/)) });
const transfer = v.object({ kind: v.literal("transfer"), iban: v.string() });
const receipt = type({ id: "string", paid: "boolean", "note?": "string" });

/** Lasting keys, alternatives, errors of its own, hooks, and what declares no schema. */
const billing = defineFeature("ledger", (r) => {
  r.write("payment.create", {
    route: "POST /invoices/:invoice/payments",
    access: access.tenant,
    once: { required: true, keepSeconds: 86_400 },
    replay: "encrypted",
    status: 202,
    input: v.intersect([
      v.object({ invoice: v.string() }),
      money,
      v.variant("kind", [card, transfer]),
    ]),
    output: receipt,
    handler: () => ({ id: "1", paid: true }),
  });
  r.query("receipt.show", {
    route: "GET /receipts/:id",
    access: access.tenant,
    input: type({ id: "string", "currency?": "'EUR' | 'USD'" }),
    output: receipt,
    handler: (_ctx, { id }) => ({ id, paid: true }),
  });
  r.query("price.list", { route: "GET /prices", access: access.everyone, handler: () => [] });
  r.write("webhook.receive", {
    route: "POST /webhooks",
    access: access.everyone,
    handler: () => undefined,
  });
  r.hook("vault.file.create", { before: (_ctx, given) => given });
  r.query("internal.total", { output: z.number(), handler: () => 0 });
});

/** A server with everything that a contract speaks of. */
export const server = buildServer({
  features: [files, billing],
  basePath: "/api",
  cors: { origins: ["https://app.example.com"], credentials: true },
  limits: { bodyBytes: 100_000 },
  openapi: { access: access.systemAdmin, title: "Everything", version: "2026-11" },
});
