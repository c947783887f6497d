import { access } from "../../base/identity/access.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { ownRoute } from "../handlers/own-route.ts";
import type { ServerOptions } from "../registry/options.ts";
import type { ApiKeyRuntime } from "./api-key-actions.ts";

/** The routes that manage the API keys of the caller's tenant. */
export function apiKeyRoutes({ auth }: Pick<ServerOptions, "auth">) {
  const apiKeys = auth?.apiKeys;
  if (!apiKeys) return [];
  const { manage = access.admin } = apiKeys === true ? {} : apiKeys;
  return ["create POST", "list GET", "rotate POST /:id/rotate", "revoke DELETE /:id"].map(
    (text) => {
      const [action, method, path = ""] = text.split(" ");
      return ownRoute(`api-key.${action}`, `${method} /api-keys${path}`, manage);
    },
  );
}

/** The first call loads the actions. */
export function apiKeyHandlers(
  options: Pick<ServerOptions, "auth">,
  runtime: ApiKeyRuntime,
): HandlerDeclaration[] {
  const actions = lazy(async () =>
    (await import("./api-key-actions.ts")).createApiKeyActions(runtime),
  );
  return apiKeyRoutes(options).map((declared) => ({
    ...declared,
    run: async (ctx, input) => (await actions.open()).run(declared.name, ctx, input),
    revealed: (result) => actions.value?.revealed(result),
  }));
}
