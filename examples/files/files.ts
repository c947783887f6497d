import { randomUUID } from "node:crypto";
import { GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  CommitConditionError,
  defineFeature,
  NotFoundError,
  PermanentError,
  type PipelineContext,
  PipelineError,
  reply,
  resolveConfigOrParam,
  type TenantOf,
  ValidationError,
  type Write,
} from "keelson";
import * as z from "zod";
import { declareConfig } from "./config.ts";
import { presignDownload } from "./storage.ts";

/** From a byte up: DynamoDB stores no number that is much smaller. */
const newFile = z.object({ name: z.string().min(1).max(200), sizeMb: z.number().min(0.000001) });
const file = z.object({ id: z.string(), name: z.string(), sizeMb: z.number() });
const fileId = z.object({ id: z.string().max(100) });
const nothing = z.undefined();
/** What a write of files may answer with beside keelson's own errors. */
const errors = { maintenance: 503 };
const row = file.extend({ createdAt: z.string(), scannedAt: z.string().optional() });
type Row = z.infer<typeof row>;
const fileCreated = z.object({ id: z.string(), sizeMb: z.number() });
const fileDeleted = fileCreated;
const scan = z.object({ id: z.string() });

declare module "keelson" {
  interface Writes {
    "files.file.create": Write<typeof newFile, typeof file>;
    "files.file.delete": Write<typeof fileId, typeof nothing>;
  }
  interface Events {
    "file.created": z.output<typeof fileCreated>;
    "file.deleted": z.output<typeof fileDeleted>;
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
    // The same files in the order of their names.
    const nameKeyOf = (ctx: PipelineContext, { name, id }: Pick<Row, "name" | "id">) =>
      table.key(ctx, "names", `${name}#${id}`);
    r.event("file.created", fileCreated, { keep: true });
    r.event("file.deleted", fileDeleted, { keep: true });

    r.write("file.create", {
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
        const created: Row = { id, name, sizeMb, createdAt: new Date().toISOString() };
        const answer = reply(toFile(created), { headers: { location: `/files/${id}` } });
        await ctx.publish("file.created", { id, sizeMb });
        const rows = [
          { ...(await keyOf(ctx, id)), ...created },
          { ...(await nameKeyOf(ctx, created)), ...created },
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
        const chosen = await resolveConfigOrParam(ctx, config.listOrder, order);
        const partition = chosen === "name" ? "names" : "files";
        const { pk } = await table.key(ctx, partition);
        const { Items = [], LastEvaluatedKey } = await ctx.db.send(
          new QueryCommand({
            TableName: table.name,
            KeyConditionExpression: "pk = :pk",
            ExpressionAttributeValues: { ":pk": pk },
            ScanIndexForward: chosen === "name",
            Limit: limit,
            // Of the caller's tenant, whatever the cursor says.
            ...(cursor === undefined
              ? {}
              : { ExclusiveStartKey: await table.key(ctx, partition, placeOf(cursor)) }),
            ConsistentRead: true,
          }),
        );
        const items = Items.map((item) => toFile(row.parse(item)));
        return LastEvaluatedKey === undefined
          ? { items }
          : { items, cursor: cursorOf(LastEvaluatedKey["sk"]) };
      },
    });

    // What files take up, so that the quota reads one row and not all of them.
    const usage = r.projection("files.usage", {
      version: 1,
      on: {
        "file.created": (ctx, { payload }) => add(ctx, payload.sizeMb),
        "file.deleted": (ctx, { payload }) => add(ctx, -payload.sizeMb),
      },
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
      output: z.object({ storageQuotaMb: z.number(), usedMb: z.number() }),
      handler: async (ctx) => {
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key: await usageKeyOf(ctx) }),
        );
        return {
          storageQuotaMb: await ctx.config(config.storageQuotaMb),
          usedMb: Number(Item?.["usedMb"] ?? 0),
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
          new GetCommand({
            TableName: table.name,
            Key: await keyOf(ctx, id),
            ConsistentRead: true,
          }),
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
        const expires = await resolveConfigOrParam(
          ctx,
          config.signedUrlExpirySeconds,
          expiresSeconds,
          {
            onClamp: (data) => ctx.log.warn("config.per_request_clamped", data),
          },
        );
        return {
          url: await presignDownload(ctx.user.tenantId, id, expires),
          expiresSeconds: expires,
        };
      },
    });

    r.write("file.delete", {
      route: "DELETE /files/:id",
      access: access.tenant,
      input: fileId,
      output: nothing,
      errors,
      handler: async (ctx, { id }) => {
        const Key = await keyOf(ctx, id);
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key, ConsistentRead: true }),
        );
        if (Item === undefined) throw new NotFoundError("file", id);
        const found = row.parse(Item);
        await ctx.publish("file.deleted", { id, sizeMb: found.sizeMb });
        const remove = { TableName: table.name, Key, ConditionExpression: "attribute_exists(pk)" };
        const removeName = { TableName: table.name, Key: await nameKeyOf(ctx, found) };
        try {
          return await ctx.commit([{ Delete: remove }, { Delete: removeName }], undefined);
        } catch (error) {
          throw error instanceof CommitConditionError ? new NotFoundError("file", id) : error;
        }
      },
    });

    for (const write of ["files.file.create", "files.file.delete"] as const) {
      r.hook(write, {
        before: async (ctx) => {
          if (await ctx.config(config.maintenanceMode))
            throw new PipelineError("Files cannot be changed during maintenance", 503, {
              code: "maintenance",
            });
        },
      });
    }

    r.on("file.created", "enqueue-scan", async (ctx, { payload }) => {
      await ctx.enqueue("files.file.scan", { id: payload.id });
    });

    r.job("file.scan", {
      input: scan,
      handler: async (ctx, { id }) => {
        if (ctx.user.tenantId === undefined)
          throw new PermanentError("a file belongs to a tenant, and the scan has none");
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

/** Files in the order of their IDs are in that of time: a UUID of version 7 (RFC 9562). */
function newFileId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

/** Where the next page begins: opaque to clients, who send it back. */
function cursorOf(place: unknown): string {
  return Buffer.from(String(place)).toString("base64url");
}

function placeOf(cursor: string): string {
  const place = Buffer.from(cursor, "base64url").toString();
  if (place !== "" && cursorOf(place) === cursor && Buffer.byteLength(place) <= 1_024) return place;
  throw new ValidationError([{ field: "cursor", error: "must be one that a list has given" }]);
}

function toFile({ id, name, sizeMb }: Row): z.infer<typeof file> {
  return { id, name, sizeMb };
}
