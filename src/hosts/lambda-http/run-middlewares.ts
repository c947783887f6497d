import type { RequestScope } from "../../app/runtime/scope.ts";
import { describeError } from "../../base/errors/describe.ts";
import type { MiddyFunction, MiddyParts, MiddyPlugin, MiddyRequest } from "./lazy-mode.ts";
import { logAnswered, noting } from "./middy-error.ts";

export interface MiddlewareRun extends Pick<MiddyParts, "befores" | "handler"> {
  readonly event: unknown;
  readonly context: unknown;
}

/** Runs a function's middlewares around a handler. Logs an error that a middleware answers. */
export async function runMiddlewares(
  middy: MiddyFunction,
  scope: RequestScope,
  { event, context, befores, handler }: MiddlewareRun,
): Promise<unknown> {
  const { plugin } = middy;
  const request = middy.request(event, context);
  plugin.requestStart(request);
  let failed: { readonly error: unknown } | undefined;
  const onErrors = noting(middy.onErrors, (error) => {
    failed = { error };
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

/**
 * Calls `requestEnd` for a failed request. As in Middy, an error of `requestEnd` becomes the
 * `cause` of the request's error, if that error has no cause.
 */
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

/** Calls `requestEnd`, and returns its result only if that is a promise. */
function ended(plugin: MiddyPlugin, request: MiddyRequest): unknown {
  const end = plugin.requestEnd(request);
  return end instanceof Promise ? end : undefined;
}

export function logLate(scope: RequestScope, error: unknown): void {
  const { data } = describeError(error, {
    requestId: scope.requestId,
    environment: "production",
  }).log;
  scope.log.debug("handler.failed_late", data);
}
