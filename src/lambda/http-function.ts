import { routed } from "../declare/routes.ts";
import { createRouteTable } from "../http/route-table.ts";
import { answer } from "../run/pipeline.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RequestScope } from "../run/scope.ts";
import { formReader, type LambdaAnswer, toAnswer, type WholeResponse, wholeAnswer } from "./codec.ts";
import { assertFits, eventCodec, failure, type HttpFacts, inBetween } from "./event-codec.ts";
import { scopeMode } from "./execution-mode.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";
import type { ExecutionMode } from "./lazy-mode.ts";

export { createLambdaRuntime, loadSdk } from "./create-runtime.ts";

/**
 * Creates the execution mode of a function that answers events of every shape.
 *
 * @param name - a handler with a route that alone is answered; default: every route.
 */
export function httpMode(runtime: Runtime, name?: string): ExecutionMode {
  const declaration = name === undefined ? undefined : runtime.server.registry.handlers.get(name);
  const routes = declaration === undefined ? runtime.routes : createRouteTable(routed([declaration]));
  const handle = (scope: RequestScope, event: LambdaHttpEvent, { shape, headers }: HttpFacts): Promise<LambdaHttpResult> => {
    const request = shape.request(event, scope.hasMiddlewares ? shape.headers(event) : headers, scope);
    if (scope.hasMiddlewares) request.readForm = formReader(event.body, request.headers["content-type"]);
    if (request.method !== "GET") {
      // Safe: only a query's answer is a stream, and no query is asked whether its answer fits.
      request.assertFits = (response) => assertFits(wholeAnswer({ ...response, cookies: [] } as WholeResponse), { shape, event });
    }
    const written = (given: LambdaAnswer) => inBetween(given, scope, { shape, event });
    const answered = answer(scope, request, routes, (response) => {
      const given = toAnswer(response, shape.maxResultBytes);
      return given instanceof Promise ? given.then(written) : written(given);
    });
    if (!scope.hasMiddlewares) return answered;
    // Middlewares get errors as the answers that they are: Middy's own error handler would make a 500 of each.
    return answered.catch((error: unknown) => {
      if (scope.signal?.aborted) throw error; // it was answered before
      const facts = { shape, event, method: request.method, headers: request.headers, signal: undefined };
      return written(failure(error, scope, facts));
    });
  };
  return scopeMode(runtime, { ...eventCodec, handle });
}
