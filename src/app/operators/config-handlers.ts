import { access } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "../features/handler.ts";
import type { Registry } from "../registry/registry.ts";
import type { configActions } from "./config-actions.ts";
import type { ConfigInput } from "./config-input.ts";

/**
 * The operators' API: the configuration keys of a server over HTTP. Every route takes a signed-in
 * caller; the rules of each key decide the rest. What they do is loaded with the first call.
 */
export function configHandlers({ configKeys }: Registry): readonly HandlerDeclaration[] {
  const declare = (action: keyof typeof configActions, route: string): HandlerDeclaration => ({
    kind: route.startsWith("GET ") ? "query" : "write",
    feature: "keelson",
    name: `keelson.config.${action}`,
    input: undefined,
    output: undefined,
    route,
    access: access.authenticated,
    body: "json",
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
      // A fingerprint is no place for a secret: one of few possible values is found by trying them all.
      isClaimable: (input) =>
        configKeys.get(String((input as ConfigInput).key))?.definition.encrypted !== true,
    },
    declare("reset", "DELETE /config/:key"),
    declare("history", "GET /config/:key/history"),
    declare("undo", "POST /config/:key/undo"),
  ];
}
