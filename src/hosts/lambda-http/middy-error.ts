import { FrameworkError, isTypedError, PipelineError } from "../../base/errors/errors.ts";

/**
 * Reads the errors that middlewares of Middy throw, which say their status as those of `http-errors` do: from 400 to 499
 * they are typed errors with it, and Middy's early timeout is `timeout`. Any other error stays as it is.
 */
export function fromMiddy(error: unknown): unknown {
  if (!(error instanceof Error) || isTypedError(error)) return error;
  if (isEarlyTimeout(error)) return new FrameworkError("timeout", timeoutMessage);
  // Safe: what is read of it is checked.
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

/** What is said where the time is over. */
export const timeoutMessage = "The request took too long";

interface HttpErrorLike {
  readonly statusCode?: unknown;
  readonly expose?: unknown;
  readonly headers?: unknown;
}

/** What `timeoutEarlyResponse` throws by default, of this copy of Middy or of another. */
function isEarlyTimeout({ name, cause }: Error): boolean {
  return (
    name === "TimeoutError" &&
    typeof cause === "object" &&
    (cause as { package?: unknown } | null)?.package === "@middy/core"
  );
}
