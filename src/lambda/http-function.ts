import { ambientStore } from "../context/ambient.ts";
import { routed } from "../declare/routes.ts";
import { createRouteTable } from "../http/route-table.ts";
import { answer } from "../run/pipeline.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RequestScope } from "../run/scope.ts";
import { formReader, type LambdaAnswer, toAnswer, type WholeResponse, wholeAnswer } from "./codec.ts";
import { assertFits, eventCodec, failure, inBetween, shapeOf } from "./event-codec.ts";
import { scopeMode } from "./execution-mode.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";
import type { ExecutionMode } from "./lazy-mode.ts";

export { createLambdaRuntime, loadSdk } from "./create-runtime.ts";

/** What answers HTTP events. */
export interface HttpFunction<Event extends LambdaHttpEvent> {
  /** Opens the scope that `answer` runs in. */
  readonly mode: ExecutionMode;
  answer(event: Event): Promise<LambdaHttpResult<Event>>;
}

/**
 * Creates what answers events of every shape.
 *
 * @param name - a handler with a route that alone is answered; default: every route.
 */
export function createHttpFunction<Event extends LambdaHttpEvent>(runtime: Runtime, name?: string): HttpFunction<Event> {
  const declaration = name === undefined ? undefined : runtime.server.registry.handlers.get(name);
  const routes = declaration === undefined ? runtime.routes : createRouteTable(routed([declaration]));
  const answerEvent = (event: Event): Promise<LambdaHttpResult<Event>> => {
    // Safe: the execution mode below opened the scope that this runs in.
    const scope = ambientStore() as RequestScope;
    const shape = shapeOf(event);
    const request = shape.request(event, scope.hasMiddlewares ? shape.headers(event) : scope.headers, scope);
    if (scope.hasMiddlewares) request.readForm = formReader(event.body, request.headers["content-type"]);
    if (request.method !== "GET") {
      // Safe: only a query's answer is a stream, and no query is asked whether its answer fits.
      request.assertFits = (response) => assertFits(wholeAnswer({ ...response, cookies: [] } as WholeResponse), { shape, event });
    }
    // Safe: the shape is the event's, and so is its result.
    const written = (given: LambdaAnswer) => inBetween(given, scope, { shape, event }) as LambdaHttpResult<Event>;
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
  return { mode: scopeMode(runtime, eventCodec), answer: answerEvent };
}
