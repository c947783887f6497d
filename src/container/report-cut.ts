import { describeError } from "../errors/describe.ts";
import type { Logger } from "../log/logger.ts";

/** A response that has begun can only be cut off; a client that left is no error. */
export function reportCut(log: Logger, error: unknown): void {
  const isClientGone = error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE";
  if (isClientGone) log.warn("request.aborted");
  else log.error("response.cut_off", describeError(error, { requestId: "", environment: "production" }).log.data);
}
