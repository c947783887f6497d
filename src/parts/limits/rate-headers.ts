import { secondsUntil } from "./rate-window.ts";

/** One limit of a response. */
export interface SentRate {
  readonly name: string;
  readonly number: number;
  readonly windowMs: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** Names that pages of other origins have to be allowed to read. */
export const exposedRateHeaders = "RateLimit, RateLimit-Policy";

/** Fields of draft-ietf-httpapi-ratelimit-headers-11. Names in kebab case do not need escapes. */
export function rateHeaders(
  rates: readonly SentRate[],
  nowMs: number,
): Readonly<Record<"ratelimit" | "ratelimit-policy", string>> {
  const policies = rates.map(
    ({ name, number, windowMs }) => `"${name}";q=${number};w=${windowMs / 1_000}`,
  );
  const limits = rates.map(
    ({ name, remaining, resetMs }) => `"${name}";r=${remaining};t=${secondsUntil(resetMs, nowMs)}`,
  );
  return { "ratelimit-policy": policies.join(", "), ratelimit: limits.join(", ") };
}
