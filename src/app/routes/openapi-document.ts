import { hash } from "node:crypto";
import { defined } from "../../base/types/defined.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import {
  documentText,
  type OpenApiDocument,
  type OpenApiSpec,
  openApiDocument,
} from "../openapi/openapi.ts";
import { apiKeyRoutes } from "../operators/api-key-handlers.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { clientLogRoute, healthRoutes, openApiRoute } from "./own-routes.ts";

/**
 * Creates the OpenAPI document of a server, without the routes that exist only in development.
 *
 * @param from - directory of the application's packages. Default: the working directory.
 */
export function serverDocument(
  server: DeclaredServer,
  from?: string,
  spec?: OpenApiSpec,
): Promise<OpenApiDocument> {
  const { registry, options } = server;
  const rule = options.openapi === false ? undefined : options.openapi?.access;
  const own = [
    ...(registry.configKeys.size > 0 ? configHandlers(registry) : []),
    ...apiKeyRoutes(options),
    clientLogRoute,
    ...healthRoutes,
    ...(rule === undefined ? [] : [openApiRoute(rule)]),
  ];
  return openApiDocument(server, { own, ...defined({ from, spec }) });
}

/** The first answer logs the schemas that the document could not describe. */
export async function createAnswer(server: DeclaredServer): Promise<HandlerDeclaration["run"]> {
  const { document, unsaid } = await serverDocument(server);
  const text = documentText(document);
  const etag = `"${hash("sha256", text, "base64url")}"`;
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-cache",
    etag,
  };
  let isLogged = unsaid.length === 0;
  return ({ log, request }) => {
    if (!isLogged) log.warn("openapi.undescribed", { schemas: unsaid });
    isLogged = true;
    const isKnown = request?.headers["if-none-match"]?.includes(etag) === true;
    return isKnown ? reply(undefined, { status: 304, headers }) : reply(text, { headers });
  };
}
