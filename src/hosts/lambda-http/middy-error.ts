import { warnOfUndeclared } from "../../app/run/undeclared-error.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import { FrameworkError, isTypedError, PipelineError } from "../../base/errors/errors.ts";
import type { MiddyHook } from "./lazy-mode.ts";

/**
 * Converts an error of a Middy middleware: one with a `statusCode` from 400 to 499, like those of
 * `http-errors`, becomes a typed error, and an early timeout becomes `timeout`. Others stay
 * unchanged.
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
  // Safe: `describeError` checks the headers of an error.
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

/** Returns whether an error is Middy's default for an early timeout, from any copy of Middy. */
function isEarlyTimeout({ name, cause }: Error): boolean {
  return (
    name === "TimeoutError" &&
    typeof cause === "object" &&
    (cause as { package?: unknown } | null)?.package === "@middy/core"
  );
}

/**
 * Returns the `onError` hooks with the first one wrapped: it passes the error to `note` before any
 * hook can replace or answer the error.
 */
export function noting(
  onErrors: readonly MiddyHook[],
  note: (error: unknown) => void,
): readonly MiddyHook[] {
  const [first, ...others] = onErrors;
  if (first === undefined) return [];
  const noted: MiddyHook = (request) => {
    note(request.error);
    return first(request);
  };
  // Middy passes the names of middlewares to its own hooks, so the wrapper keeps the name.
  return [Object.defineProperty(noted, "name", { value: first.name }), ...others];
}

/**
 * Logs an error that a middleware has answered. The status of the response determines the level.
 */
export function logAnswered(scope: RequestScope, thrown: unknown, result: unknown): void {
  const error = fromMiddy(thrown);
  const { level, data } = describeError(error, {
    requestId: "",
    environment: scope.runtime.environment,
  }).log;
  const status = statusOf(result);
  if (status === undefined) scope.log[level]("request.failed", data);
  else scope.log[status >= 500 ? "error" : "warn"]("request.failed", { ...data, status });
  scope.spans?.thrown(error, status ?? Number(data["status"]));
  warnOfUndeclared(scope, data);
}

function statusOf(result: unknown): number | undefined {
  // Safe: `Object` always returns an object, whose absent members are `undefined`.
  const { statusCode } = Object(result) as { readonly statusCode?: unknown };
  const status = Number(statusCode);
  return Number.isInteger(status) && status >= 100 ? status : undefined;
}
