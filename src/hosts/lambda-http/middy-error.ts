import { FrameworkError, isTypedError, PipelineError } from "../../base/errors/errors.ts";

/**
 * Converts errors that Middy's middlewares throw, which carry a status like errors of
 * `http-errors`. Statuses 400 to 499 become typed errors, and Middy's early timeout becomes
 * `timeout`. Other errors stay unchanged.
 */
export function fromMiddy(error: unknown): unknown {
  if (!(error instanceof Error) || isTypedError(error)) return error;
  if (isEarlyTimeout(error)) return new FrameworkError("timeout", timeoutMessage);
  // Safe: the members are checked before use.
  const { statusCode, message, expose, headers } = error as Error & HttpErrorLike;
  if (
    typeof statusCode !== "number" ||
    !Number.isInteger(statusCode) ||
    statusCode < 400 ||
    statusCode > 499
  )
    return error;
  // Safe: describing an error checks its headers.
  const details = { cause: error, headers: (headers ?? {}) as Record<string, string> };
  return new PipelineError(
    expose === false ? "The request was refused" : message,
    statusCode,
    details,
  );
}

export const timeoutMessage = "The request took too long";

interface HttpErrorLike {
  readonly statusCode?: unknown;
  readonly expose?: unknown;
  readonly headers?: unknown;
}

/**
 * Returns whether an error is the default one of `timeoutEarlyResponse`, in this copy of Middy or
 * another.
 */
function isEarlyTimeout({ name, cause }: Error): boolean {
  return (
    name === "TimeoutError" &&
    typeof cause === "object" &&
    (cause as { package?: unknown } | null)?.package === "@middy/core"
  );
}
