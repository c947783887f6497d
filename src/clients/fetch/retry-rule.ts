import type { errorCodes } from "../../base/errors/errors.ts";

/** Codes of temporary failures, without `unknown_outcome`, which may hide completed work. */
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

/** Statuses of a gateway or load balancer whose server is unreachable or too slow. */
const ofGateways: readonly number[] = [429, 502, 503, 504];

/** Whether a response may be retried, depending on the code in its body. */
export function mayBeRetried(status: number): boolean {
  return status === 409 || ofGateways.includes(status);
}

/**
 * | code of the body | retried |
 * |---|---|
 * | in {@link passing}, with its own status | yes |
 * | of the application | 429 and 503, if `Retry-After` is set |
 * | none: a gateway's response | 429, 502, 503, 504 |
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
