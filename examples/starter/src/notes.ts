import { randomUUID } from "node:crypto";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  createTenantConfig,
  defineFeature,
  NotFoundError,
  reply,
  ValidationError,
} from "keelson";
import { z } from "zod";

const note = z.object({ id: z.string(), text: z.string() });

/** Notes of a tenant. */
export const notes = defineFeature("notes", (r) => {
  const config = r.config({
    keys: {
      // Each tenant may have its own value: PUT /config/notes:config:max-length.
      maxLength: createTenantConfig("number", { default: 140, bounds: { min: 1, max: 10_000 } }),
    },
  });
  // Each tenant reaches only its own rows: `table.key` puts the tenant first in their keys.
  const table = r.table("notes", { partitionKey: "pk", sortKey: "id", tenant: true });
  const created = r.event("note.created", z.object({ id: z.string() }));

  r.write("note.create", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ text: z.string().min(1) }),
    output: note,
    status: 201,
    handler: async (ctx, { text }) => {
      const maxLength = await ctx.config(config.maxLength);
      if (text.length > maxLength) {
        throw new ValidationError([
          { field: "text", error: `must have at most ${maxLength} characters` },
        ]);
      }
      const id = randomUUID();
      const key = table.key(ctx, "notes", id);
      ctx.log.info("note.created", { id });
      await ctx.publish(created, { id });
      // The note, its event and the response are written in one transaction: a retry with the same Idempotency-Key gets the
      // same response.
      return ctx.commit(
        [{ Put: { TableName: table.name, Item: { ...key, text } } }],
        reply({ id, text }, { status: 201, headers: { location: `/notes/${id}` } }),
      );
    },
  });

  r.query("note.show", {
    route: "GET /notes/:id",
    access: access.authenticated,
    input: z.object({ id: z.string() }),
    output: note,
    handler: async (ctx, { id }) => {
      const key = table.key(ctx, "notes", id);
      const { Item } = await ctx.db.send(
        new GetCommand({ TableName: table.name, Key: key, ConsistentRead: true }),
      );
      if (Item === undefined) throw new NotFoundError("note", id);
      return note.parse(Item);
    },
  });

  return { created };
});
