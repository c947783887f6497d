import type { CorsOptions } from "./cors-options.ts";

const alwaysAllowed =
  "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-ID, Traceparent";
const alwaysExposed = "X-Request-ID, Idempotent-Replayed, Retry-After";

export function corsHeaders(
  { origins, credentials = false, exposedHeaders }: CorsOptions,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const { origin } = headers;
  const vary = origins === "*" ? {} : { vary: "Origin" };
  if (!isAllowed(origins, origin)) return vary;
  return {
    ...vary,
    "access-control-allow-origin": origins === "*" ? "*" : origin,
    ...(credentials ? { "access-control-allow-credentials": "true" } : {}),
    "access-control-expose-headers": joined(alwaysExposed, exposedHeaders),
  };
}

/**
 * Headers of a preflight response, in addition to {@link corsHeaders}; `undefined` for any other
 * request, and for an origin that is not allowed.
 */
export function preflight(
  { origins, allowedHeaders, maxAgeSeconds = 600 }: CorsOptions,
  headers: Readonly<Record<string, string>>,
  allow: string,
): Record<string, string> | undefined {
  const { origin, "access-control-request-method": method } = headers;
  if (method === undefined || !isAllowed(origins, origin)) return undefined;
  return {
    "access-control-allow-methods": allow,
    "access-control-allow-headers": joined(alwaysAllowed, allowedHeaders),
    "access-control-max-age": String(maxAgeSeconds),
  };
}

/**
 * Adds `*` to the names instead of replacing them, because `*` does not cover `Authorization`
 * (Fetch, 4.9) and older browsers do not support it.
 */
function joined(always: string, more: readonly string[] | "*" = []): string {
  return more.length === 0
    ? always
    : `${always}, ${typeof more === "string" ? more : more.join(", ")}`;
}

function isAllowed(origins: CorsOptions["origins"], origin: string | undefined): origin is string {
  return origin !== undefined && (origins === "*" || origins.includes(origin));
}
