import { access } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { ownRoute } from "../handlers/own-route.ts";
import type { Registry } from "../registry/registry.ts";
import type { ConfigInput, configActions } from "./config-actions.ts";

/**
 * The operators' API for configuration keys. Every route requires an authenticated caller; the
 * rules of each key decide which callers may read and change it. The first call loads the actions.
 */
export function configHandlers({ configKeys }: Registry): readonly HandlerDeclaration[] {
  const declare = (action: keyof typeof configActions, route: string): HandlerDeclaration => ({
    ...ownRoute(`config.${action}`, route, access.authenticated),
    run: async (ctx, given) => {
      const { configActions } = await import("./config-actions.ts");
      return configActions[action](configKeys, ctx, given);
    },
  });
  return [
    declare("list", "GET /config"),
    declare("explain", "GET /config/:key"),
    {
      ...declare("set", "PUT /config/:key"),
      // Not for encrypted keys: a fingerprint would reveal a secret with few possible values.
      isClaimable: (input) =>
        configKeys.get(String((input as ConfigInput).key))?.definition.encrypted !== true,
    },
    declare("reset", "DELETE /config/:key"),
    declare("history", "GET /config/:key/history"),
    declare("undo", "POST /config/:key/undo"),
  ];
}
