import middy from "@middy/core";
import type { HandlerDeclaration } from "../app/handler.ts";
import { routed } from "../app/routes.ts";
import type { Runtime } from "../app/runtime.ts";
import { type Server, serverInternals } from "../app/server.ts";
import { ambientStore } from "../context/ambient.ts";
import type { HttpResponse } from "../http/message.ts";
import { answer } from "../http/pipeline.ts";
import { createRouteTable, type RouteTable } from "../http/route-table.ts";
import { scopeMode } from "../middleware/execution-mode.ts";
import type { RequestScope } from "../middleware/scope.ts";
import { lambdaRuntime, prepareLambda } from "./bind.ts";
import { type LambdaAnswer, toAnswer } from "./codec.ts";
import { assertFits, eventCodec, inBetween, shapeOf } from "./event-codec.ts";
import type { HttpApiEvent } from "./http-api.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";

/**
 * A Lambda function for HTTP events; Middy's `use` adds further middlewares to it. `Event` is only
 * what those are typed with: at run time it answers every shape.
 */
export type LambdaHttpHandler<Event extends LambdaHttpEvent = HttpApiEvent> = middy.MiddyfiedHandler<
  Event,
  LambdaHttpResult<Event>
>;

/**
 * Makes one Lambda function that answers every route of the server, to events of a REST API, an
 * HTTP API, a function URL or an Application Load Balancer. An answer over what the transport takes
 * (6 MB, a load balancer 1 MB) becomes a 500 `response_too_large`; 50 ms before the function's time is
 * over, `ctx.signal` aborts and the answer is a 504 `timeout` (specification 4.5).
 *
 * @example
 * export const http = lambdaHttp(server);
 */
export function lambdaHttp<Event extends LambdaHttpEvent = HttpApiEvent>(server: Server): LambdaHttpHandler<Event> {
  return httpFunction(server, (runtime) => runtime.routes);
}

/**
 * Makes a Lambda function that answers the route of one handler, to the same events as
 * {@link lambdaHttp}.
 *
 * @throws Error where the server has no handler of that name, or it has no route.
 * @example
 * export const downloadUrl = lambdaHandler(server, "files.file.download-url");
 */
export function lambdaHandler<Event extends LambdaHttpEvent = HttpApiEvent>(
  server: Server,
  name: string,
): LambdaHttpHandler<Event> {
  const declaration = serverInternals(server).registry.handlers.get(name);
  if (declaration?.route === undefined) {
    throw new Error(`lambdaHandler: ${name} is no handler with a route; the server has ${handlerNames(server)}`);
  }
  const routes = createRouteTable(routed([declaration]));
  return httpFunction(server, () => routes);
}

function httpFunction<Event extends LambdaHttpEvent>(
  server: Server,
  routes: (runtime: Runtime) => RouteTable<HandlerDeclaration>,
): LambdaHttpHandler<Event> {
  const handler = (event: Event): Promise<LambdaHttpResult<Event>> => {
    // Safe: the execution mode below opened the scope that this runs in.
    const scope = ambientStore() as RequestScope;
    const shape = shapeOf(event);
    const request = shape.request(event, scope.hasMiddlewares ? shape.headers(event) : scope.headers, scope);
    if (request.method !== "GET") {
      // Safe: only a query's answer is a stream, and no query is asked whether its answer fits.
      request.assertFits = (response) =>
        assertFits(toAnswer({ ...response, cookies: [] } as HttpResponse, shape.maxResultBytes) as LambdaAnswer, {
          shape,
          event,
        });
    }
    // Safe: the shape is the event's, and so is its result.
    const written = (given: LambdaAnswer) => inBetween(given, scope, { shape, event }) as LambdaHttpResult<Event>;
    const answered = answer(scope, request, routes(scope.runtime), (response) => {
      const given = toAnswer(response, shape.maxResultBytes);
      return given instanceof Promise ? given.then(written) : written(given);
    });
    if (!scope.hasMiddlewares) return answered;
    // Middlewares get errors as the answers that they are: Middy's own error handler would make a 500 of each.
    return answered.catch((error: unknown) => {
      if (scope.signal?.aborted) throw error; // it was answered before
      const facts = { shape, event, method: request.method, headers: request.headers, signal: undefined };
      return eventCodec.fail(error, scope, facts) as LambdaHttpResult<Event>; // safe: as above
    });
  };
  prepareLambda(server);
  return middy<Event, LambdaHttpResult<Event>>({ executionMode: scopeMode(() => lambdaRuntime(server), eventCodec) }).handler(
    handler,
  );
}

function handlerNames(server: Server): string {
  const names = [...server.registry.handlers.values()].filter(({ route }) => route !== undefined).map(({ name }) => name);
  return names.length === 0 ? "none" : names.join(", ");
}
