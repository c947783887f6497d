import type { AccessRule } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";

export function ownQuery(
  name: string,
  route: string,
  access: AccessRule,
): Omit<HandlerDeclaration, "run"> {
  return {
    kind: "query",
    feature: "keelson",
    name: `keelson.${name}`,
    input: undefined,
    output: undefined,
    route,
    access,
    body: "json",
  };
}

export function openApiRoute(access: AccessRule): Omit<HandlerDeclaration, "run"> {
  return ownQuery("openapi.show", "GET /openapi.json", access);
}
