import { describeError } from "../../base/errors/describe.ts";
import { isTypedError, systemCode } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";

/**
 * Logs that a response was cut off after its start: a warning if the client has left, else an
 * error. A typed error as the reason of `signal` means that the service ended the request.
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
