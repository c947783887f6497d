import { describeError } from "../../base/errors/describe.ts";
import { isTypedError } from "../../base/errors/errors.ts";
import { systemCode } from "../../base/errors/system-code.ts";
import type { Logger } from "../../base/log/logger.ts";

/**
 * A response that has begun can only be cut off; a client that left is no error.
 *
 * @param signal - the request's: where its reason is a typed error, the service itself has ended the request.
 */
export function reportCut(log: Logger, error: unknown, signal: AbortSignal): void {
  const isPremature = systemCode(error) === "ERR_STREAM_PREMATURE_CLOSE";
  if (isPremature && !isTypedError(signal.reason)) log.warn("request.aborted");
  else
    log.error(
      "response.cut_off",
      describeError(error, { requestId: "", environment: "production" }).log.data,
    );
}
