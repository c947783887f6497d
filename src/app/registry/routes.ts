import { type ParsedRoute, parseRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";

export interface RoutedHandler {
  readonly route: ParsedRoute;
  readonly target: HandlerDeclaration;
}

/** Omits handlers without a well-formed route. */
export function routed(handlers: Iterable<HandlerDeclaration>): RoutedHandler[] {
  return [...handlers].flatMap((target) => {
    const route = target.route === undefined ? undefined : parseRoute(target.route);
    return route === undefined || "problem" in route ? [] : [{ route, target }];
  });
}
