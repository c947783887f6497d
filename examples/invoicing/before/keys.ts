// Without `apiKeys`: a client exchanges its key for a token of five minutes, which all other routes take.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { SignJWT } from "jose";
import {
  AccessDeniedError,
  access,
  defineFeature,
  FrameworkError,
  NotFoundError,
  type QueryContext,
  reply,
} from "keelson";
import * as z from "zod";

const stored = z.object({
  hash: z.string(),
  id: z.string(),
  tenantId: z.string(),
  name: z.string(),
  roles: z.array(z.string()),
  createdAt: z.string(),
  expiresAt: z.string().optional(),
  lastUsedAt: z.string().optional(),
});
const hourMs = 3_600_000;
const hashOf = (key: string) => createHash("sha256").update(key).digest("base64url");

export const createKeysFeature = (secret: string) =>
  defineFeature("keys", (r) => {
    // The exchange does not know the tenant yet, so the rows are of no tenant, and each handler has to filter.
    const table = r.table("keys", {
      partitionKey: "hash",
      tenant: false,
      indexes: { byTenant: { partitionKey: "tenantId", sortKey: "createdAt" } },
    });
    const keysOf = async (ctx: QueryContext, tenantId: string) => {
      const { Items } = await ctx.db.send(
        new QueryCommand({
          TableName: table.name,
          IndexName: table.index("byTenant"),
          KeyConditionExpression: "tenantId = :tenantId",
          ExpressionAttributeValues: { ":tenantId": tenantId },
        }),
      );
      return z.array(stored).parse(Items);
    };

    r.write("key.create", {
      route: "POST /keys",
      access: access.admin,
      status: 201,
      replay: "encrypted", // the stored answer has the key
      input: z.object({
        name: z.string().min(1).max(100),
        roles: z.array(z.string()).max(100),
        expiresInSeconds: z.int().min(1).optional(),
      }),
      handler: async (ctx, { name, roles, expiresInSeconds }) => {
        const { tenantId } = ctx.user;
        if (roles.some((role) => !ctx.user.roles.includes(role)))
          throw new AccessDeniedError("keys.roles");
        const key = `inv_${randomBytes(32).toString("base64url")}`;
        const now = Date.now();
        const record = {
          ...{ id: randomUUID(), tenantId, name, roles, createdAt: new Date(now).toISOString() },
          ...(expiresInSeconds !== undefined && {
            expiresAt: new Date(now + expiresInSeconds * 1_000).toISOString(),
          }),
        };
        const Item = { ...record, hash: hashOf(key) };
        return ctx.commit(
          [{ Put: { TableName: table.name, Item } }],
          reply({ ...record, key }, { status: 201 }),
        );
      },
    });
    r.query("key.list", {
      route: "GET /keys",
      access: access.admin,
      handler: async (ctx) => {
        const keys = await keysOf(ctx, ctx.user.tenantId);
        return { items: keys.map(({ hash: _, ...key }) => key) };
      },
    });
    r.write("key.revoke", {
      route: "DELETE /keys/:id",
      access: access.admin,
      input: z.object({ id: z.string() }),
      handler: async (ctx, { id }) => {
        const found = (await keysOf(ctx, ctx.user.tenantId)).find((key) => key.id === id);
        if (found === undefined) throw new NotFoundError("key", id);
        return ctx.commit(
          [{ Delete: { TableName: table.name, Key: { hash: found.hash } } }],
          undefined,
        );
      },
    });
    r.write("key.exchange", {
      route: "POST /token",
      access: access.everyone,
      once: false, // each exchange makes a new token
      input: z.object({ key: z.string().max(100) }),
      handler: async (ctx, { key }) => {
        const Key = { hash: hashOf(key) };
        const { Item } = await ctx.db.send(
          new GetCommand({ TableName: table.name, Key, ConsistentRead: true }),
        );
        const now = Date.now();
        const known = Item === undefined ? undefined : stored.parse(Item);
        if (known === undefined || Date.parse(known.expiresAt ?? "9999-01-01") <= now)
          throw new FrameworkError("unauthenticated", "The key is not valid");
        if (now - Date.parse(known.lastUsedAt ?? "1970-01-01") > hourMs)
          await ctx.db.send(
            new UpdateCommand({
              ...{ TableName: table.name, Key },
              UpdateExpression: "SET lastUsedAt = :now",
              ConditionExpression: "attribute_exists(id)", // a revoked key stays away
              ExpressionAttributeValues: { ":now": new Date(now).toISOString() },
            }),
          );
        const token = await new SignJWT({ tenantId: known.tenantId, roles: known.roles })
          .setProtectedHeader({ alg: "HS256" })
          .setSubject(known.id)
          .setExpirationTime("5m")
          .sign(new TextEncoder().encode(secret));
        return { token, expiresInSeconds: 300 };
      },
    });
  });
