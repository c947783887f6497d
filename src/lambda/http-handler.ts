import middy from "@middy/core";
import type { HandlerDeclaration } from "../app/handler.ts";
import { routed } from "../app/routes.ts";
import type { Runtime } from "../app/runtime.ts";
import { type Server, serverInternals } from "../app/server.ts";
import { ambientStore } from "../context/ambient.ts";
import { answer, fail, finish } from "../http/pipeline.ts";
import { createRouteTable, type RouteTable } from "../http/route-table.ts";
import { type EventCodec, scopeMode } from "../middleware/execution-mode.ts";
import type { RequestScope } from "../middleware/scope.ts";
import { lambdaRuntime, prepareLambda } from "./bind.ts";
import {
  assertHttpApiEvent,
  fromHttpResponse,
  type HttpApiEvent,
  type HttpApiResult,
  headersOf,
  toHttpRequest,
} from "./http-api.ts";

/** A Lambda function for HTTP API events; Middy's `use` adds further middlewares to it. */
export type LambdaHttpHandler = middy.MiddyfiedHandler<HttpApiEvent, HttpApiResult>;

/**
 * Makes one Lambda function that answers every route of the server.
 *
 * @example
 * export const http = lambdaHttp(server);
 */
export function lambdaHttp(server: Server): LambdaHttpHandler {
  return httpFunction(server, (runtime) => runtime.routes);
}

/**
 * Makes a Lambda function that answers the route of one handler.
 *
 * @throws Error where the server has no handler of that name, or it has no route.
 * @example
 * export const downloadUrl = lambdaHandler(server, "files.file.download-url");
 */
export function lambdaHandler(server: Server, name: string): LambdaHttpHandler {
  const declaration = serverInternals(server).registry.handlers.get(name);
  if (declaration?.route === undefined) {
    throw new Error(`lambdaHandler: ${name} is no handler with a route; the server has ${handlerNames(server)}`);
  }
  const routes = createRouteTable(routed([declaration]));
  return httpFunction(server, () => routes);
}

function httpFunction(server: Server, routes: (runtime: Runtime) => RouteTable<HandlerDeclaration>): LambdaHttpHandler {
  const handler = async (event: HttpApiEvent): Promise<HttpApiResult> => {
    // Safe: the execution mode below opened the scope that this runs in.
    const scope = ambientStore() as RequestScope;
    return fromHttpResponse(
      await answer(scope, toHttpRequest(event, scope.hasMiddlewares ? headersOf(event) : scope.headers), routes(scope.runtime)),
    );
  };
  prepareLambda(server);
  return middy<HttpApiEvent, HttpApiResult>({ executionMode: scopeMode(() => lambdaRuntime(server), codec) }).handler(handler);
}

const codec: EventCodec<HttpApiEvent, HttpApiResult> = {
  isDirect: true,
  facts: (event) => {
    assertHttpApiEvent(event);
    return { headers: headersOf(event), signal: undefined };
  },
  fail: (error, scope, event) => {
    const { status, headers, body } = fail(scope, { headers: scope.headers, method: event.requestContext.http.method }, error);
    return { statusCode: status, headers, ...(typeof body === "string" ? { body } : {}) };
  },
  finish: (result, scope) => {
    const finished = scope.hasMiddlewares ? structured(result) : result;
    // Safe: without middlewares the answer is ours, and so are its headers.
    const own = scope.hasMiddlewares ? textHeaders(finished.headers) : (finished.headers as Record<string, string>);
    finished.headers = finish(scope, scope, own);
    return finished;
  },
};

/** A middleware may answer with anything: without a `statusCode` the gateway takes it for a JSON body. */
function structured(result: HttpApiResult | string | undefined): HttpApiResult {
  if (typeof result === "object" && result?.statusCode !== undefined) return { ...result };
  const body = typeof result === "string" ? result : JSON.stringify(result);
  return { statusCode: 200, headers: { "content-type": "application/json" }, ...(body === undefined ? {} : { body }) };
}

function textHeaders(headers: Readonly<Record<string, boolean | number | string>> = {}): Record<string, string> {
  const text: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) text[name.toLowerCase()] = String(value);
  return text;
}

function handlerNames(server: Server): string {
  const names = [...server.registry.handlers.values()].filter(({ route }) => route !== undefined).map(({ name }) => name);
  return names.length === 0 ? "none" : names.join(", ");
}
