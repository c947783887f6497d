import { type ParsedRoute, parseRoute } from "../../parts/http/route.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";

export interface RoutedHandler<Handler = HandlerDeclaration> {
  readonly route: ParsedRoute;
  readonly target: Handler;
}

export function routed<Handler extends Pick<HandlerDeclaration, "route">>(
  handlers: Iterable<Handler>,
): RoutedHandler<Handler>[] {
  return [...handlers].flatMap((target) => {
    const route = target.route === undefined ? undefined : parseRoute(target.route);
    return route === undefined || "problem" in route ? [] : [{ route, target }];
  });
}
