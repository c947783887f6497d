import type { RateLimit } from "../../parts/limits/rate-limit.ts";
import type { RateLimitFacts } from "../../parts/limits/rate-store.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { RateDeclaration } from "../handlers/rate-limit.ts";
import type { DeclaredServer } from "./declared-server.ts";

/** A limit with its name and its place. */
export interface PlacedRate {
  readonly limit: RateLimit;
  readonly name: string;
  readonly facts: RateLimitFacts;
}

/**
 * Returns the limits of a handler's route: the limits of the server, of its feature, and its own. If two
 * have one name, the later one gets a number.
 */
export function ratesOf(
  { options, registry }: Pick<DeclaredServer, "options" | "registry">,
  { feature, name: handler, rateLimit }: Pick<HandlerDeclaration, "feature" | "name" | "rateLimit">,
): readonly PlacedRate[] {
  const own = registry.features.find(({ name }) => name === feature);
  if (own === undefined) return []; // keelson's own routes
  const places = [
    ["server", options.rateLimit],
    [feature, own.rateLimit],
    [handler, rateLimit],
  ] as const;
  const names = new Set<string>();
  return places.flatMap(([place, limits]) =>
    [limits ?? []].flat().map((limit): PlacedRate => {
      const wanted = nameOf(limit);
      let name = wanted;
      for (let number = 2; names.has(name); number += 1) name = `${wanted}-${number}`;
      names.add(name);
      return { limit, name, facts: factsOf(`${place} ${name}`, limit) };
    }),
  );
}

/** Returns all limits of a server, each once. */
export function allRates(
  server: Pick<DeclaredServer, "options" | "registry">,
): readonly PlacedRate[] {
  const { registry } = server;
  const all = [
    ...[...registry.handlers.values()].flatMap((handler) => ratesOf(server, handler)),
    ...[...registry.rateLimits.values()].map(rateOf),
  ];
  return [...new Map(all.map((rate) => [rate.facts.id, rate])).values()];
}

/** Returns a limit that handlers take from. */
export function rateOf({ name: id, limit }: RateDeclaration): PlacedRate {
  return { limit, name: id.slice(id.indexOf(".") + 1), facts: factsOf(id, limit) };
}

function factsOf(id: string, { window, requests }: RateLimit): RateLimitFacts {
  return { id, window, key: typeof requests === "number" ? undefined : requests.id };
}

/** A key's identifier ends with its name. */
function nameOf({ name, requests, per, window }: RateLimit): string {
  if (name !== undefined) return name;
  if (typeof requests !== "number") return requests.id.slice(requests.id.lastIndexOf(":") + 1);
  return `${typeof per === "function" ? "own" : per}-${window}`;
}
