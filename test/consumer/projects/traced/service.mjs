// A service whose requests lead to an event, a job and a webhook; the first attempt at each event fails.
import { trace } from "@opentelemetry/api";
import { access, buildServer, defineFeature } from "keelson";
import { z } from "zod";

const file = z.object({ id: z.string(), url: z.string() });
const failed = new Set();

const traced = defineFeature("traced", (r) => {
  r.event("traced-file.created", file);
  r.write("file.create", {
    route: "POST /files",
    access: access.everyone,
    input: file,
    handler: async (ctx, created) => {
      await trace.getTracer("app").startActiveSpan("app.work", async (span) => span.end());
      await ctx.publish("traced-file.created", created);
      return { traceId: ctx.trace.traceId };
    },
  });
  r.on("traced-file.created", {
    name: "follow",
    handler: async (ctx, { payload }) => {
      if (!failed.has(payload.id)) {
        failed.add(payload.id);
        throw new Error("it is broken once");
      }
      await ctx.enqueue("traced.file.scan", payload);
    },
  });
  r.job("file.scan", {
    input: file,
    handler: (ctx, { id, url }) => ctx.delivery.send("webhook", { url, body: { id } }),
  });
});

export const build = () =>
  buildServer({
    features: [traced],
    trace: { incoming: "trust" },
    delivery: { webhook: { allowHttp: true, allowPrivate: true } },
  });
