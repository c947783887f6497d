import { randomUUID } from "node:crypto";
import { GetCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import {
  type AuthenticatedUser,
  access,
  CommitConditionError,
  defineFeature,
  NotFoundError,
  PermanentError,
  type PipelineContext,
  PipelineError,
  reply,
  resolveConfigOrParam,
  type TenantTable,
  ValidationError,
  type Write,
} from "keelson";
import * as z from "zod";
import { declareConfig } from "./config.ts";
import { presignDownload } from "./storage.ts";

const newFile = z.object({ name: z.string().min(1).max(200), sizeMb: z.number().positive() });
const file = z.object({ id: z.string(), name: z.string(), sizeMb: z.number() });
const fileId = z.object({ id: z.string().max(100) });
const nothing = z.undefined();
const row = file.extend({ createdAt: z.string(), scannedAt: z.string().optional() });
type Row = z.infer<typeof row>;
const fileCreated = z.object({ id: z.string(), sizeMb: z.number() });
const scan = z.object({ id: z.string() });

declare module "keelson" {
  interface Writes {
    "files.file.create": Write<typeof newFile, typeof file>;
    "files.file.delete": Write<typeof fileId, typeof nothing>;
  }
  interface Events {
    "file.created": z.output<typeof fileCreated>;
  }
  interface Jobs {
    "files.file.scan": z.input<typeof scan>;
  }
}

/** What the developer of an application decides when building the feature. */
export interface FilesOptions {
  /** Endings of file names that are taken, `".pdf"` for example; `"*"` takes every name. */
  readonly accept: readonly string[];
}

/** Files of a tenant: their names and sizes, and URLs to download them. */
export const createFilesFeature = ({ accept }: FilesOptions) =>
  defineFeature("files", (r) => {
    const config = declareConfig(r);
    // Rows begin with their tenant, and handlers reach those of their own.
    const table = r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true });
    const keyOf = (ctx: PipelineContext, id: string) => table.key(ctx, "files", id);
    r.event("file.created", fileCreated);

    r.write("file.create", {
      route: "POST /files",
      access: access.tenant,
      input: newFile,
      output: file,
      handler: async (ctx, { name, sizeMb }) => {
        const maxSizeMb = await ctx.config(config.maxUploadSizeMb);
        if (sizeMb > maxSizeMb) throw new ValidationError([{ field: "sizeMb", error: `must be at most ${maxSizeMb}` }]);
        if (!accept.some((ending) => ending === "*" || name.endsWith(ending))) {
          throw new ValidationError([{ field: "name", error: `must end in ${accept.join(" or ")}` }]);
        }
        const id = randomUUID();
        const created: Row = { id, name, sizeMb, createdAt: new Date().toISOString() };
        const answer = reply(toFile(created), { status: 201, headers: { location: `/files/${id}` } });
        await ctx.publish("file.created", { id, sizeMb });
        return ctx.commit([{ Put: { TableName: table.name, Item: { ...(await keyOf(ctx, id)), ...created } } }], answer);
      },
    });

    r.query("file.list", {
      route: "GET /files",
      access: access.tenant,
      input: z.object({ order: z.string().optional() }),
      output: z.object({ items: z.array(file) }),
      handler: async (ctx, { order }) => {
        const rows = await rowsOf(ctx, table);
        const chosen = await resolveConfigOrParam(ctx, config.listOrder, order);
        rows.sort((a, b) => (chosen === "name" ? a.name.localeCompare(b.name) : b.createdAt.localeCompare(a.createdAt)));
        return { items: rows.map(toFile) };
      },
    });

    r.query("file.quota", {
      route: "GET /files/quota",
      access: access.tenant,
      output: z.object({ storageQuotaMb: z.number(), usedMb: z.number() }),
      handler: async (ctx) => {
        const rows = await rowsOf(ctx, table);
        return {
          storageQuotaMb: await ctx.config(config.storageQuotaMb),
          usedMb: rows.reduce((sum, { sizeMb }) => sum + sizeMb, 0),
        };
      },
    });

    r.query("file.show", {
      route: "GET /files/:id",
      access: access.tenant,
      input: fileId,
      output: file,
      handler: async (ctx, { id }) => {
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key: await keyOf(ctx, id), ConsistentRead: true }),
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
      handler: async (ctx, { id, expiresSeconds }) => {
        const expires = await resolveConfigOrParam(ctx, config.signedUrlExpirySeconds, expiresSeconds, {
          onClamp: (data) => ctx.log.warn("config.per_request_clamped", data),
        });
        return { url: await presignDownload(ctx.user.tenantId, id, expires), expiresSeconds: expires };
      },
    });

    r.write("file.delete", {
      route: "DELETE /files/:id",
      access: access.tenant,
      input: fileId,
      handler: async (ctx, { id }) => {
        const remove = { TableName: table.name, Key: await keyOf(ctx, id), ConditionExpression: "attribute_exists(pk)" };
        try {
          return await ctx.commit([{ Delete: remove }], undefined);
        } catch (error) {
          throw error instanceof CommitConditionError ? new NotFoundError("file", id) : error;
        }
      },
    });

    for (const write of ["files.file.create", "files.file.delete"] as const) {
      r.hook(write, {
        before: async (ctx) => {
          if (await ctx.config(config.maintenanceMode))
            throw new PipelineError("Files cannot be changed during maintenance", 503);
        },
      });
    }

    r.on("file.created", "enqueue-scan", async (ctx, { payload }) => {
      await ctx.enqueue("files.file.scan", { id: payload.id });
    });

    r.job("file.scan", {
      input: scan,
      handler: async (ctx, { id }) => {
        if (ctx.user.tenantId === undefined) throw new PermanentError("a file belongs to a tenant, and the scan has none");
        const scanned = {
          TableName: table.name,
          Key: await keyOf(ctx, id),
          UpdateExpression: "SET scannedAt = :now ADD scans :one",
          ConditionExpression: "attribute_exists(pk)",
          ExpressionAttributeValues: { ":now": new Date().toISOString(), ":one": 1 },
        };
        // Before the commit: a scan that is done again sends the same message, and one that is done never less than one.
        await ctx.delivery.send("log", { text: "the file was scanned", file: id });
        try {
          await ctx.commit([{ Update: scanned }], undefined);
        } catch (error) {
          if (!(error instanceof CommitConditionError)) throw error;
          ctx.log.info("file.gone", { id }); // deleted meanwhile: there is nothing to scan
        }
      },
    });

    return { config };
  });

async function rowsOf(ctx: PipelineContext<AuthenticatedUser>, table: TenantTable<never, "pk", "sk">): Promise<Row[]> {
  const { pk } = await table.key(ctx, "files");
  const rows: Row[] = [];
  const pages = paginateQuery(
    { client: ctx.db },
    {
      TableName: table.name,
      KeyConditionExpression: "pk = :pk",
      ExpressionAttributeValues: { ":pk": pk },
      ConsistentRead: true,
    },
  );
  for await (const { Items = [] } of pages) rows.push(...Items.map((item) => row.parse(item)));
  return rows;
}

function toFile({ id, name, sizeMb }: Row): z.infer<typeof file> {
  return { id, name, sizeMb };
}
