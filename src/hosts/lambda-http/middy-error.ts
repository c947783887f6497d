import { warnOfUndeclared } from "../../app/run/undeclared-error.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import { FrameworkError, isTypedError, PipelineError } from "../../base/errors/errors.ts";
import type { MiddyHook } from "./lazy-mode.ts";

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

/**
 * Wraps the first `onError` hook so that it records the error before any hook can replace or answer
 * it.
 *
 * @returns the hooks to run; the first one calls `note`.
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
  // Middy passes the names of middlewares to its hooks.
  return [Object.defineProperty(noted, "name", { value: first.name }), ...others];
}

/**
 * Logs an error that a middleware has answered. The status of its response determines the level.
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

/** Returns the HTTP status of a result, or `undefined` without one. */
function statusOf(result: unknown): number | undefined {
  const { statusCode } = Object(result) as { readonly statusCode?: unknown }; // safe: objects have members
  const status = Number(statusCode);
  return Number.isInteger(status) && status >= 100 ? status : undefined;
}
