import type { errorCodes } from "../../base/errors/codes.ts";

/** The codes of keelson that a later attempt may not get. Not `unknown_outcome`: nobody knows what it would repeat. */
const passing: ReadonlyMap<string, number> = new Map(
  Object.entries({
    request_in_progress: 409,
    too_many_requests: 429,
    config_unavailable: 503,
    isolation_unavailable: 503,
    overloaded: 503,
    timeout: 504,
  } satisfies Partial<typeof errorCodes>),
);

/** What a balancer or gateway answers by itself while the server cannot be reached, or is too slow. */
const ofGateways: readonly number[] = [429, 502, 503, 504];

/** Whether an answer of this status depends on its code; any other is final. */
export function mayBeRetried(status: number): boolean {
  return status === 409 || ofGateways.includes(status);
}

/**
 * Whether another attempt may get a better answer.
 *
 * | code of the body | retried |
 * |---|---|
 * | of {@link passing}, with its own status | yes |
 * | of the application | 429 and 503, if `Retry-After` asks for it |
 * | none: a gateway's answer | 429, 502, 503, 504 |
 */
export function isRetried(
  status: number,
  code: string | undefined,
  retryAfter: string | null,
): boolean {
  if (code === undefined) return ofGateways.includes(status);
  if (passing.get(code) === status) return true;
  return retryAfter !== null && (status === 429 || status === 503);
}
