import type { AccessRule } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "./handler.ts";

/** Declares a route of keelson, without its function. A GET is a query. */
export function ownRoute(
  name: string,
  route: string,
  access: AccessRule,
): Omit<HandlerDeclaration, "run"> {
  return {
    kind: route.startsWith("GET ") ? "query" : "write",
    feature: "keelson",
    name: `keelson.${name}`,
    input: undefined,
    output: undefined,
    route,
    access,
    body: "json",
  };
}
