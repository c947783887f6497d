import { type ParsedRoute, parseRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";

/** A handler with its parsed route. */
export interface RoutedHandler {
  readonly route: ParsedRoute;
  readonly target: HandlerDeclaration;
}

/** Returns the handlers that have a well-formed route, with the parsed route. */
export function routed(handlers: Iterable<HandlerDeclaration>): RoutedHandler[] {
  return [...handlers].flatMap((target) => {
    const route = target.route === undefined ? undefined : parseRoute(target.route);
    return route === undefined || "problem" in route ? [] : [{ route, target }];
  });
}
