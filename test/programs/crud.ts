import { randomUUID } from "node:crypto";
import { DeleteCommand, GetCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, NotFoundError } from "keelson";
import { z } from "zod";

const note = z.object({ id: z.string(), text: z.string().max(1_000) });

const notes = defineFeature("notes", (r) => {
  const table = r.table("notes", { partitionKey: "pk", sortKey: "id", tenant: true });

  r.write("note.create", {
    route: "POST /notes",
    access: access.tenant,
    input: note.omit({ id: true }),
    output: note,
    once: { required: true },
    status: 201,
    handler: async (ctx, { text }) => {
      const Item = { ...table.key(ctx, "notes", randomUUID()), text };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], Item);
    },
  });
  r.query("note.list", {
    route: "GET /notes",
    access: access.tenant,
    input: z.object({ cursor: z.string().optional() }),
    output: z.object({ items: z.array(note), cursor: z.string().optional() }),
    handler: async (ctx, { cursor }) => {
      const page = await table.page(ctx, { partition: "notes", limit: 20, cursor });
      return { ...page, items: z.array(note).parse(page.items) };
    },
  });
  r.query("note.show", {
    route: "GET /notes/:id",
    access: access.tenant,
    input: note.pick({ id: true }),
    output: note,
    handler: async (ctx, { id }) => {
      const Key = table.key(ctx, "notes", id);
      const { Item } = await ctx.db.send(new GetCommand({ TableName: table.name, Key }));
      if (Item === undefined) throw new NotFoundError("note", id);
      return note.parse(Item);
    },
  });
  r.write("note.replace", {
    route: "PUT /notes/:id",
    access: access.tenant,
    input: note,
    output: note,
    handler: async (ctx, { id, text }) => {
      const Item = { ...table.key(ctx, "notes", id), text };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], Item);
    },
  });
  r.write("note.delete", {
    route: "DELETE /notes/:id",
    access: access.tenant,
    input: note.pick({ id: true }),
    handler: async (ctx, { id }) => {
      const Key = table.key(ctx, "notes", id);
      await ctx.db.send(new DeleteCommand({ TableName: table.name, Key }));
    },
  });
});
export const server = buildServer({ features: [notes] });
