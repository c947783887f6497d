import { errorCodes } from "../../base/errors/error-codes.ts";
import { PipelineError } from "../../base/errors/errors.ts";

/** Status of `quota_exceeded`: 402 if more can be bought. */
export type QuotaStatus = 429 | 402;

/** Members of `details` in the body of `quota_exceeded`. */
export interface QuotaDetails {
  /** Full name of the quota: `files.storage`. */
  readonly quota: string;
  /** Usage without the refused commit. */
  readonly used: number;
  readonly limit: number;
  /** End of the period in ISO 8601; absent for a quota without periods. */
  readonly resetsAt?: string;
}

/**
 * 429 `quota_exceeded`, or the quota's own status 402: a commit would use more than the limit of
 * its tenant, so it was not written (specification 7).
 */
export class QuotaExceededError extends PipelineError {
  static override readonly name: string = "QuotaExceededError";
  readonly details: QuotaDetails;

  constructor(details: QuotaDetails, status: QuotaStatus = errorCodes.quota_exceeded) {
    const { quota, used, limit } = details;
    super(`The quota ${quota} is exceeded: ${used} of ${limit} are used`, status, {
      code: "quota_exceeded",
    });
    this.details = details;
  }
}
