import middy from "@middy/core";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { type Handle, nameOf } from "../../base/types/handles.ts";
import type { HttpApiEvent } from "./api-gateway.ts";
import { marked, prepareLambda } from "./bind.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-events.ts";
import { lazyMode, type WithMiddlewares } from "./lazy-mode.ts";
import { streaming } from "./streaming.ts";

/**
 * Lambda function for HTTP events; Middy's `use` adds middlewares. `Event` only types those
 * middlewares: at run time, the function answers events of every shape.
 */
export type LambdaHttpHandler<Event extends LambdaHttpEvent = HttpApiEvent> = WithMiddlewares<
  Event,
  LambdaHttpResult<Event>
>;

/** Options of {@link lambdaHttp} and {@link lambdaHandler}. */
export interface LambdaHttpOptions {
  /**
   * Streams each response, without the limit of 6 MB, for a function URL or a REST API that streams.
   * Other fronts get a whole response. See `docs/lambda.md#streamed-responses`. Default `false`. Outside of Lambda, which has no streams, the
   * function returns its response.
   */
  readonly stream?: boolean;
}

/**
 * Creates one Lambda function that answers every route of the server, for events of a REST API, an
 * HTTP API, a function URL or an Application Load Balancer. A response larger than the transport
 * allows (6 MB, behind a load balancer 1 MB) becomes a 500 `response_too_large`. 50 ms before the
 * function's timeout, `ctx.signal` aborts and the response is a 504 `timeout` (specification 4.5).
 *
 * @example
 * export const http = lambdaHttp(server);
 */
export function lambdaHttp<Event extends LambdaHttpEvent = HttpApiEvent>(
  server: Server,
  options?: LambdaHttpOptions,
): LambdaHttpHandler<Event> {
  return httpFunction("lambdaHttp", server, options);
}

/**
 * Creates a Lambda function that answers the route of one handler, for the same events as
 * {@link lambdaHttp}.
 *
 * @param handler - its handle, or its full name.
 * @throws Error if the server has no such handler, or the handler has no route.
 * @example
 * export const downloadUrl = lambdaHandler(server, files.downloadUrl);
 */
export function lambdaHandler<Event extends LambdaHttpEvent = HttpApiEvent>(
  server: Server,
  handler: Handle<"query" | "write"> | string,
  options?: LambdaHttpOptions,
): LambdaHttpHandler<Event> {
  const name = nameOf(handler);
  const { handlers } = serverInternals(server).registry;
  if (handlers.get(name)?.route === undefined) {
    const names = [...handlers.values()].flatMap((handler) =>
      handler.route === undefined ? [] : [handler.name],
    );
    throw new Error(
      `lambdaHandler: ${name} is not a handler with a route; the server has ${names.join(", ") || "none"}`,
    );
  }
  return httpFunction("lambdaHandler", server, options, name);
}

function httpFunction<Event extends LambdaHttpEvent>(
  what: string,
  server: Server,
  options: LambdaHttpOptions = {},
  name?: string,
): LambdaHttpHandler<Event> {
  assertKnownOptions(what, options, ["stream"]);
  const { stream } = options;
  const streamify = stream ? streaming()?.streamifyResponse : undefined;
  const invoked = prepareLambda(
    server,
    () => (streamify === undefined ? import("./http-events.ts") : import("./streamed-events.ts")),
    name,
  );
  const executionMode = lazyMode(async () => {
    const { loaded, runtime } = await invoked.open();
    return loaded.httpMode(runtime, name);
  }, streamify);
  const handler = middy({ executionMode }).handler(answeredByMode);
  handler.handler = refuseHandler;
  marked(handler, {
    ...(name === undefined ? { kind: "http" } : { kind: "handler", handler: name }),
    ...(stream && { stream }),
  });
  // Safe: a Middy handler has these methods, and each returns the handler itself.
  return handler as unknown as LambdaHttpHandler<Event>;
}

function refuseHandler(): never {
  throw new Error(
    ".handler(): the handlers of the server answer, and this one would never run; declare it with r.query or r.write, add middlewares with .use(), or keep a Middy handler with requestScope of keelson/middy",
  );
}

/* v8 ignore next 3 -- Middy requires a handler, but the execution mode answers in its place */
function answeredByMode(): never {
  throw new Error("lambdaHttp: no handler can be called around its execution mode");
}
