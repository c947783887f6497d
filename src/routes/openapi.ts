import type { DeclaredServer } from "../declare/declared-server.ts";
import type { HandlerDeclaration } from "../declare/handler.ts";
import { access } from "../identity/access.ts";
import type { Environment } from "../process/environment.ts";
import { lazy } from "../process/lazy.ts";
import { openApiRoute } from "./own-query.ts";

/**
 * `GET /openapi.json`, where the server has it: in development for everyone, elsewhere for whom `openapi.access` lets through. What
 * makes the document is loaded with the first request for it, and makes it once.
 */
export function openApiHandlers(
  server: DeclaredServer,
  environment: Environment,
): HandlerDeclaration[] {
  const { openapi } = server.options;
  if (openapi === false) return [];
  const rule = openapi?.access ?? (environment === "development" ? access.everyone : undefined);
  if (rule === undefined) return [];
  const answering = lazy(async () => (await import("./openapi-document.ts")).createAnswer(server));
  return [
    { ...openApiRoute(rule), run: async (ctx, input) => (await answering.open())(ctx, input) },
  ];
}
