import { access } from "../../base/identity/access.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { openApiRoute } from "./own-routes.ts";

/**
 * Creates `GET /openapi.json` for the callers that `openapi.access` admits. Without this rule, the
 * route exists only in development, for every caller. The first request makes the document.
 */
export function openApiHandlers({
  server,
  environment,
}: Pick<Runtime, "server" | "environment">): HandlerDeclaration[] {
  const { openapi } = server.options;
  if (openapi === false) return [];
  const rule = openapi?.access ?? (environment === "development" ? access.everyone : undefined);
  if (rule === undefined) return [];
  const answering = lazy(async () => (await import("./openapi-document.ts")).createAnswer(server));
  return [
    { ...openApiRoute(rule), run: async (ctx, input) => (await answering.open())(ctx, input) },
  ];
}
