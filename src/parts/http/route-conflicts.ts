import type { RouteEntry } from "./route-table.ts";

/**
 * Returns the pairs of routes that match the same requests, with the same method and the same
 * shape.
 */
export function conflicts<Target>(
  routes: readonly RouteEntry<Target>[],
): { readonly first: RouteEntry<Target>; readonly second: RouteEntry<Target> }[] {
  const seen = new Map<string, RouteEntry<Target>>();
  const found: { first: RouteEntry<Target>; second: RouteEntry<Target> }[] = [];
  for (const entry of routes) {
    const shape = `${entry.route.method} /${entry.route.segments.map((segment) => ("static" in segment ? segment.static : ":")).join("/")}`;
    const first = seen.get(shape);
    if (first === undefined) seen.set(shape, entry);
    else found.push({ first, second: entry });
  }
  return found;
}
