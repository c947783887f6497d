import { randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  CommitConditionError,
  defineFeature,
  NotFoundError,
  PermanentError,
  PipelineError,
  type Projection,
  reply,
  type TenantOf,
  ValidationError,
} from "keelson";
import * as z from "zod";
import type { CurrentPlan } from "./billing.ts";
import { declareConfig } from "./config.ts";
import { presignDownload } from "./storage.ts";

/** At least a byte: DynamoDB cannot store much smaller numbers. */
const newFile = z.object({ name: z.string().min(1).max(200), sizeMb: z.number().min(0.000001) });
const file = z.object({ id: z.string(), name: z.string(), sizeMb: z.number() });
const fileId = z.object({ id: z.string().max(100) });
const nothing = z.undefined();
/** Errors of the writes of files, in addition to keelson's own errors. */
const errors = { maintenance: 503 };
const row = file.extend({ createdAt: z.string(), scannedAt: z.string().optional() });
type Row = z.infer<typeof row>;
const fileCreated = z.object({ id: z.string(), sizeMb: z.number() });
const fileDeleted = fileCreated;

/** Options that the application's developer sets when building the feature. */
export interface FilesOptions {
  /** Accepted endings of file names, for example `".pdf"`; `"*"` accepts every name. */
  readonly accept: readonly string[];
  readonly currentPlan: CurrentPlan;
}

/** Files of a tenant: their names and sizes, and URLs to download them. */
export const createFilesFeature = ({ accept, currentPlan }: FilesOptions) =>
  defineFeature("files", (r) => {
    const config = declareConfig(r, currentPlan);
    // Keys of rows start with their tenant, and handlers reach only the rows of their caller's tenant.
    const table = r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true });
    const keyOf = (ctx: TenantOf, id: string) => table.key(ctx, "files", id);
    // The same files, ordered by name.
    const nameKeyOf = (ctx: TenantOf, { name, id }: Pick<Row, "name" | "id">) =>
      table.key(ctx, "names", `${name}#${id}`);
    const created = r.event("file.created", fileCreated, { keep: true });
    const deleted = r.event("file.deleted", fileDeleted, { keep: true });

    // Counted in whole megabytes, each file rounded up. The plan decides the limit, so money raises it: 402.
    const storage = r.quota("storage", {
      limit: config.storageQuotaMb,
      window: "forever",
      status: 402,
    });
    const sizeIn = ({ sizeMb }: Pick<Row, "sizeMb">) => Math.ceil(sizeMb);

    const create = r.write("file.create", {
      route: "POST /files",
      access: access.tenant,
      input: newFile,
      output: file,
      status: 201,
      errors,
      handler: async (ctx, { name, sizeMb }) => {
        const maxSizeMb = await ctx.config(config.maxUploadSizeMb);
        if (sizeMb > maxSizeMb)
          throw new ValidationError([{ field: "sizeMb", error: `must be at most ${maxSizeMb}` }]);
        if (!accept.some((ending) => ending === "*" || name.endsWith(ending))) {
          throw new ValidationError([
            { field: "name", error: `must end in ${accept.join(" or ")}` },
          ]);
        }
        const id = newFileId();
        const added: Row = { id, name, sizeMb, createdAt: new Date().toISOString() };
        const answer = reply(toFile(added), { headers: { location: `/files/${id}` } });
        await storage.add(ctx, sizeIn(added));
        await ctx.publish(created, { id, sizeMb });
        const rows = [
          { ...keyOf(ctx, id), ...added },
          { ...nameKeyOf(ctx, added), ...added },
        ];
        return ctx.commit(
          rows.map((Item) => ({ Put: { TableName: table.name, Item } })),
          answer,
        );
      },
    });

    r.query("file.list", {
      route: "GET /files",
      access: access.tenant,
      input: z.object({
        order: z.string().optional(),
        limit: z.coerce.number().int().min(1).max(100).default(20),
        cursor: z.string().max(2_000).optional(),
      }),
      output: z.object({ items: z.array(file), cursor: z.string().optional() }),
      handler: async (ctx, { order, limit, cursor }) => {
        const chosen = await ctx.config(config.listOrder, { param: order });
        const page = await table.page(ctx, {
          partition: chosen === "name" ? "names" : "files",
          descending: chosen !== "name",
          limit,
          cursor,
        });
        return { ...page, items: page.items.map((item) => toFile(row.parse(item))) };
      },
    });

    // The total size of the files, so that the quota reads one row instead of all rows.
    const usage: Projection = r.projection("files.usage", {
      version: 1,
      on: [
        [created, (ctx, { payload }) => add(ctx, payload.sizeMb)],
        [deleted, (ctx, { payload }) => add(ctx, -payload.sizeMb)],
      ],
    });
    const usageKeyOf = async (ctx: TenantOf) =>
      table.key(ctx, await usage.key(ctx, "total"), "usage");
    const add = async (ctx: TenantOf, sizeMb: number) => {
      const Key = await usageKeyOf(ctx);
      const UpdateExpression = "ADD usedMb :size";
      return [
        {
          Update: {
            TableName: table.name,
            Key,
            UpdateExpression,
            ExpressionAttributeValues: { ":size": sizeMb },
          },
        },
      ];
    };

    r.query("file.quota", {
      route: "GET /files/quota",
      access: access.tenant,
      output: z.object({ storageQuotaMb: z.number(), usedMb: z.number(), totalMb: z.number() }),
      handler: async (ctx) => {
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key: await usageKeyOf(ctx) }),
        );
        const { used: usedMb, limit: storageQuotaMb } = await storage.get(ctx);
        return { storageQuotaMb, usedMb, totalMb: Number(Item?.["usedMb"] ?? 0) };
      },
    });

    r.query("file.show", {
      route: "GET /files/:id",
      access: access.tenant,
      input: fileId,
      output: file,
      handler: async (ctx, { id }) => {
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key: keyOf(ctx, id), ConsistentRead: true }),
        );
        if (Item === undefined) throw new NotFoundError("file", id);
        return toFile(row.parse(Item));
      },
    });

    r.query("file.download-url", {
      route: "GET /files/:id/download-url",
      access: access.tenant,
      input: fileId.extend({ expiresSeconds: z.string().optional() }),
      output: z.object({ url: z.url(), expiresSeconds: z.number() }),
      rateLimit: { per: "tenant", requests: config.urlsPerMinute, window: "minute" },
      handler: async (ctx, { id, expiresSeconds }) => {
        const expires = await ctx.config(config.signedUrlExpirySeconds, {
          param: expiresSeconds,
          onClamp: (data) => ctx.log.warn("config.per_request_clamped", data),
        });
        return {
          url: await presignDownload(ctx.user.tenantId, id, expires),
          expiresSeconds: expires,
        };
      },
    });

    const remove = r.write("file.delete", {
      route: "DELETE /files/:id",
      access: access.tenant,
      input: fileId,
      output: nothing,
      errors,
      handler: async (ctx, { id }) => {
        const Key = keyOf(ctx, id);
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key, ConsistentRead: true }),
        );
        if (Item === undefined) throw new NotFoundError("file", id);
        const found = row.parse(Item);
        await storage.add(ctx, -sizeIn(found));
        await ctx.publish(deleted, { id, sizeMb: found.sizeMb });
        const byId = { TableName: table.name, Key, ConditionExpression: "attribute_exists(pk)" };
        const byName = { TableName: table.name, Key: nameKeyOf(ctx, found) };
        try {
          return await ctx.commit([{ Delete: byId }, { Delete: byName }], undefined);
        } catch (error) {
          throw error instanceof CommitConditionError ? new NotFoundError("file", id) : error;
        }
      },
    });

    // On Monday morning in the tenant's own time zone, so that people read it at work.
    r.schedule("storage.remind", {
      cron: "0 8 * * MON",
      for: "tenants",
      handler: async (ctx) => {
        const { used: usedMb, limit: quotaMb } = await storage.get(ctx);
        if (usedMb < quotaMb * 0.9) return;
        const text = "the storage is almost full";
        await ctx.delivery.send("log", { text, usedMb, quotaMb });
      },
    });

    for (const write of [create, remove]) {
      r.hook(write, {
        before: async (ctx) => {
          if (await ctx.config(config.maintenanceMode))
            throw new PipelineError("Files cannot be changed during maintenance", 503, {
              code: "maintenance",
            });
        },
      });
    }

    r.on(created, {
      name: "enqueue-scan",
      handler: async (ctx, { payload }) => {
        await ctx.enqueue(scan, { id: payload.id });
      },
    });

    const scan = r.job("file.scan", {
      input: fileCreated.pick({ id: true }),
      handler: async (ctx, { id }) => {
        if (ctx.user.tenantId === undefined)
          throw new PermanentError("a file belongs to a tenant, and the scan has no tenant");
        const scanned = {
          TableName: table.name,
          Key: keyOf(ctx, id),
          UpdateExpression: "SET scannedAt = :now ADD scans :one",
          ConditionExpression: "attribute_exists(pk)",
          ExpressionAttributeValues: { ":now": new Date().toISOString(), ":one": 1 },
        };
        // Before the commit: a repeated scan sends the same message, and a completed scan has sent at least one.
        await ctx.delivery.send("log", { text: "the file was scanned", file: id });
        try {
          await ctx.commit([{ Update: scanned }], undefined);
        } catch (error) {
          if (!(error instanceof CommitConditionError)) throw error;
          ctx.log.info("file.gone", { id }); // deleted in the meantime
        }
      },
    });

    return { config, create, remove, created, deleted, scan };
  });

/** Returns a UUID of version 7 (RFC 9562), so that the order of IDs is the order of creation. */
function newFileId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

function toFile({ id, name, sizeMb }: Row): z.infer<typeof file> {
  return { id, name, sizeMb };
}
