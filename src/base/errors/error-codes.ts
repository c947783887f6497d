/**
 * HTTP statuses of keelson's error codes (specification 7). Applications choose the code of a
 * `ConflictError` and the status of a `PipelineError`.
 */
export const errorCodes = Object.freeze({
  malformed_request: 400,
  idempotency_key_required: 400,
  unauthenticated: 401,
  signature_invalid: 401,
  access_denied: 403,
  tenant_suspended: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_in_progress: 409,
  unknown_outcome: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  validation_error: 422,
  idempotency_key_reused: 422,
  too_many_requests: 429,
  quota_exceeded: 429,
  internal_error: 500,
  response_mismatch: 500,
  response_too_large: 500,
  config_unavailable: 503,
  isolation_unavailable: 503,
  overloaded: 503,
  timeout: 504,
});

/** Code of an error that keelson itself answers with. `docs/errors.md` has each. */
export type ErrorCode = keyof typeof errorCodes;
