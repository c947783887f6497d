import { type AccessRule, access } from "../../base/identity/access.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import { ownRoute } from "../handlers/own-route.ts";

// Routes of every server, as its document describes them. Their functions are in other files.

export const healthRoutes = [
  ownRoute("health.ready", "GET /health/ready", access.everyone),
  ownRoute("health.live", "GET /health/live", access.everyone),
] as const;

export const clientLogRoute: Omit<HandlerDeclaration, "run"> = {
  ...ownRoute("log.write", "POST /log", access.authenticated),
  // A duplicate only writes a second line, and a claim for each request would cost more.
  once: false,
  body: "value",
};

export function openApiRoute(rule: AccessRule): Omit<HandlerDeclaration, "run"> {
  return ownRoute("openapi.show", "GET /openapi.json", rule);
}
