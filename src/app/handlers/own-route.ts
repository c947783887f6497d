import type { AccessRule } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "./handler.ts";

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
