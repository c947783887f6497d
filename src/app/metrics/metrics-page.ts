import { reply } from "../../parts/http/reply.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { ownRoute } from "../handlers/own-route.ts";
import type { Runtime } from "../runtime/runtime.ts";

export function metricsPage({
  metrics,
  server,
}: Pick<Runtime, "metrics" | "server">): HandlerDeclaration[] {
  const page = metrics?.page;
  const access = server.options.metrics?.access;
  if (page === undefined || access === undefined) return [];
  return [
    {
      ...ownRoute("metrics.show", "GET /metrics", access),
      run: async () => {
        const { text, contentType } = await page();
        return reply(text, {
          headers: { "content-type": contentType, "cache-control": "no-store" },
        });
      },
    },
  ];
}
