import { warnOfUndeclared } from "../../app/run/undeclared-error.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import { fromMiddy } from "./middy-error.ts";

/**
 * Wraps the first `onError` hook so that it records the error before any hook can replace or answer
 * it.
 *
 * @returns the hooks to run; the first one calls `note`.
 */
export function noting(onErrors: readonly unknown[], note: (error: unknown) => void): unknown[] {
  const [first, ...others] = onErrors as readonly OnError[]; // safe: Middy takes only functions
  if (first === undefined) return [];
  const noted: OnError = (request) => {
    note(request.error);
    return first(request);
  };
  // Middy passes the names of middlewares to its hooks.
  return [Object.defineProperty(noted, "name", { value: first.name }), ...others];
}

type OnError = (request: { readonly error: unknown }) => unknown;

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
