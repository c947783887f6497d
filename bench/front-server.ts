// The server behind each of Lambda's fronts: one answer, and one stream of five chunks.
import { access, buildServer, defineFeature, reply } from "../src/index.ts";

export const chunkMs = 20;

async function* chunks() {
  for (let n = 0; n < 5; n++) {
    if (n > 0) await new Promise((resolve) => setTimeout(resolve, chunkMs));
    yield `${n}\n`;
  }
}

const things = defineFeature("things", (r) => {
  r.query("thing.show", {
    route: "GET /things/:id",
    access: access.everyone,
    handler: (ctx) => ({ path: ctx.request?.path }),
  });
  r.query("thing.stream", {
    route: "GET /stream",
    access: access.everyone,
    handler: () => reply(chunks(), { headers: { "content-type": "text/plain" } }),
  });
});

export const server = buildServer({ features: [things], log: { requests: false } });
