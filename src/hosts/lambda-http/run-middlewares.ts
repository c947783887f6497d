import { warnOfUndeclared } from "../../app/run/failed-request.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { errorLog } from "../../base/errors/describe.ts";
import { FrameworkError, isTypedError, PipelineError } from "../../base/errors/errors.ts";
import type {
  MiddyFunction,
  MiddyHook,
  MiddyParts,
  MiddyPlugin,
  MiddyRequest,
} from "./lazy-mode.ts";

/**
 * Runs a function's middlewares around a handler. Logs an error that a middleware answers.
 * @param answering - called with such an error before the middleware.
 */
export async function runMiddlewares(
  middy: MiddyFunction,
  scope: RequestScope,
  { event, context, befores, handler }: Omit<MiddyParts, "onErrors"> & Omit<MiddyRequest, "error">,
  answering?: (error: unknown) => void,
): Promise<unknown> {
  const { plugin } = middy;
  const request = middy.request(event, context);
  plugin.requestStart(request);
  let failed: { readonly error: unknown } | undefined;
  const onErrors = noting(middy.onErrors, (error) => {
    failed = { error };
    answering?.(error);
  });
  let result: unknown;
  try {
    result = await middy.run(request, { befores, handler, onErrors });
  } catch (error) {
    await endFailed(plugin, request, error);
    throw error;
  }
  if (failed !== undefined) {
    if (scope.signal?.aborted) logLate(scope, failed.error);
    else logAnswered(scope, failed.error, result);
  }
  await ended(plugin, request);
  return result;
}

/** As in Middy, an error of `requestEnd` becomes the cause of the request's error without one. */
async function endFailed(
  plugin: MiddyPlugin,
  request: MiddyRequest,
  error: unknown,
): Promise<void> {
  try {
    await ended(plugin, request);
  } catch (endError) {
    const { cause } = Object(error) as { readonly cause?: unknown };
    if (typeof error === "object" && error !== null && (cause === undefined || cause === null))
      Reflect.set(error, "cause", endError);
  }
}

function ended(plugin: MiddyPlugin, request: MiddyRequest): unknown {
  const end = plugin.requestEnd(request);
  return end instanceof Promise ? end : undefined;
}

export function logLate(scope: RequestScope, error: unknown): void {
  scope.log.debug("handler.failed_late", errorLog(error).data);
}

/**
 * Converts an error of a Middy middleware: an error with a `statusCode` from 400 to 499, such as an
 * error of `http-errors`, becomes a typed error, and an early timeout becomes `timeout`.
 */
export function fromMiddy(error: unknown): unknown {
  if (!(error instanceof Error) || isTypedError(error)) return error;
  if (isEarlyTimeout(error)) return new FrameworkError("timeout", timeoutMessage);
  // Safe: the members are checked before use.
  const { statusCode, message, expose, headers } = error as Error & {
    readonly [Name in "statusCode" | "expose" | "headers"]?: unknown;
  };
  if (
    typeof statusCode !== "number" ||
    !Number.isInteger(statusCode) ||
    statusCode < 400 ||
    statusCode > 499
  )
    return error;
  // Safe: `describeError` checks the headers of an error.
  const details = { cause: error, headers: (headers ?? {}) as Record<string, string> };
  const shown = expose === false ? "The request was refused" : message;
  return new PipelineError(shown, statusCode, details);
}

export const timeoutMessage = "The request took too long";

/** Whether an error is the default for an early timeout, of any copy of Middy. */
function isEarlyTimeout({ name, cause }: Error): boolean {
  return (
    name === "TimeoutError" &&
    typeof cause === "object" &&
    (cause as { package?: unknown } | null)?.package === "@middy/core"
  );
}

/** Wraps the first hook, so that `note` gets the error before a hook can replace or answer it. */
function noting(
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

/** Logs an error that a middleware has answered, at the level of the response's status. */
export function logAnswered(scope: RequestScope, thrown: unknown, result: unknown): void {
  const error = fromMiddy(thrown);
  const { level, data } = errorLog(error);
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
