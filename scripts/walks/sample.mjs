import { z } from "zod";

/**
 * Server that the walks go through, with default logs, callers with a token and checked output: a
 * query that does not read anything, one that reads a configuration key, a write with a commit, an event and
 * its consumer.
 */
export function sampleServer(
  { access, buildServer, createTenantConfig, defineFeature },
  { read = (run) => run(), withMessages = false, counted = () => undefined },
) {
  const sample = defineFeature("sample", (r) => {
    const config = r.config({
      keys: {
        limit: createTenantConfig("number", {
          default: 10,
          bounds: { min: 1, max: 1_000_000 },
          access: { read: access.authenticated, write: access.admin },
        }),
      },
    });
    const table = r.table("notes", { partitionKey: "pk", tenant: false });
    const put = (id) => [{ Put: { TableName: table.name, Item: { pk: id } } }];
    r.query("note.hello", {
      route: "GET /hello",
      access: access.authenticated,
      output: z.object({ hello: z.string() }),
      handler: () => ({ hello: "world" }),
    });
    r.query("limit.show", {
      route: "GET /limit",
      access: access.authenticated,
      handler: async (ctx) => ({ limit: await read(() => ctx.config(config.limit)) }),
    });
    if (withMessages) r.event("note.added", z.object({ id: z.string() }));
    r.write("note.add", {
      route: "POST /notes",
      access: access.authenticated,
      input: z.object({ id: z.string() }),
      output: z.object({ id: z.string() }),
      handler: async (ctx, { id }) => {
        if (withMessages) await ctx.publish("note.added", { id });
        return ctx.commit(put(id), { id });
      },
    });
    if (withMessages) {
      r.on("note.added", {
        name: "count",
        handler: async (ctx, { payload }) => {
          await ctx.commit(put(`${payload.id}-counted`), undefined);
          counted();
        },
      });
    }
  });
  return buildServer({
    features: [sample],
    cache: { ttlMs: 3_600_000 }, // warm all the time
    shutdown: { lingerMs: 0 },
  });
}
