import type { RunObserver } from "../../app/observe/run-observer.ts";
import { routed } from "../../app/registry/routes.ts";
import { answer, fail, finish } from "../../app/run/pipeline.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { ScopeFacts } from "../../app/runtime/scoped-run.ts";
import { createRouteTable } from "../../parts/http/route-table.ts";
import {
  formReader,
  type HttpCodec,
  type LambdaAnswer,
  toAnswer,
  tooLarge,
  type WholeResponse,
  wholeAnswer,
} from "./codec.ts";
import { type EventCodec, scopeMode } from "./execution-mode.ts";
import { httpApi } from "./http-api.ts";
import type { LambdaHttpEvent, LambdaHttpResult } from "./http-event.ts";
import { loadBalancer } from "./load-balancer.ts";
import type { ExecutionMode } from "./middleware.ts";
import { fromMiddy } from "./middy-error.ts";
import { kindOf } from "./other-event.ts";
import { restApi } from "./rest-api.ts";
import { readResult } from "./result.ts";

export { createLambdaRuntime, openMeasuring } from "./lambda-runtime.ts";
export { loadSdk } from "./preload.ts";

/**
 * Creates the execution mode of a function that answers events of every shape.
 *
 * @param name - the only handler that is answered, which has a route; default: every route.
 */
export function httpMode(runtime: Runtime, name?: string): ExecutionMode {
  const declaration = name === undefined ? undefined : runtime.server.registry.handlers.get(name);
  const routes =
    declaration === undefined ? runtime.routes : createRouteTable(routed([declaration]));
  const handle = (
    scope: RequestScope,
    event: LambdaHttpEvent,
    { shape, headers }: HttpFacts,
  ): Promise<LambdaHttpResult> => {
    const request = shape.request(
      event,
      scope.hasMiddlewares ? shape.headers(event) : headers,
      scope,
    );
    if (scope.hasMiddlewares)
      request.readForm = formReader(event.body, request.headers["content-type"]);
    if (request.method !== "GET") {
      // Safe: only a query's response is a stream, and queries skip this check.
      request.assertFits = (response) =>
        assertFits(wholeAnswer({ ...response, cookies: [] } as WholeResponse), { shape, event });
    }
    const written = (given: LambdaAnswer) => inBetween(given, scope, { shape, event });
    const answered = answer(scope, request, routes, (response) => {
      const given = toAnswer(response, shape.maxResultBytes);
      return given instanceof Promise ? given.then(written) : written(given);
    });
    if (!scope.hasMiddlewares) return answered;
    // Middlewares receive errors as responses: Middy's error handler would make a 500 of each.
    return answered.catch((error: unknown) => {
      if (scope.signal?.aborted) throw error; // it was answered before
      const facts = {
        shape,
        event,
        method: request.method,
        headers: request.headers,
        signal: undefined,
      };
      return written(failure(error, scope, facts));
    });
  };
  return scopeMode(runtime, { ...eventCodec, handle });
}

type Shape = HttpCodec<LambdaHttpEvent, LambdaHttpResult>;

export interface HttpFacts extends ScopeFacts {
  readonly shape: Shape;
  readonly event: LambdaHttpEvent;
  readonly method: string;
}

// Safe: a codec receives only events that it matched.
const shapes = [httpApi, restApi, loadBalancer] as readonly unknown[] as readonly Shape[];

/**
 * Returns the codec for the shape of an event.
 *
 * @throws Error for an event of another kind.
 */
function shapeOf(event: LambdaHttpEvent): Shape {
  const shape =
    typeof event === "object" && event !== null
      ? shapes.find((shape) => shape.matches(event))
      : undefined;
  if (shape !== undefined) return shape;
  throw new Error(
    `the event is ${kindOf(event)}, not of a REST API, an HTTP API, a function URL or a load balancer; check the function's trigger`,
  );
}

/** Writes an answer in the shape of its event. Logs the cookies that the shape cannot carry. */
function writeAnswer(
  answer: LambdaAnswer,
  scope: RequestScope,
  { shape, event }: Pick<HttpFacts, "shape" | "event">,
): LambdaHttpResult {
  const room = shape.maxCookies(event);
  if (answer.cookies.length > room) {
    scope.log.error("response.cookies_dropped", {
      dropped: answer.cookies.length - room,
      fix: "turn on the target group's lambda.multi_value_headers.enabled",
    });
  }
  return shape.write(answer, event);
}

/**
 * Writes an answer for the middlewares, which know only the shape of the event. Without
 * middlewares, returns the answer unchanged.
 */
function inBetween(
  answer: LambdaAnswer,
  scope: RequestScope,
  facts: Pick<HttpFacts, "shape" | "event">,
): LambdaHttpResult {
  // Safe: without middlewares, `finish` reads it as an answer again.
  return scope.hasMiddlewares
    ? writeAnswer(answer, scope, facts)
    : (answer as unknown as LambdaHttpResult);
}

/**
 * Rejects an answer that does not fit its transport.
 *
 * @throws FrameworkError `response_too_large`.
 */
export function assertFits(
  answer: LambdaAnswer,
  { shape, event }: Pick<HttpFacts, "shape" | "event">,
): void {
  if (isOver(shape.maxResultBytes, answer.body, shape.write(answer, event)))
    throw tooLarge(shape.maxResultBytes);
}

/**
 * Codec of HTTP events of every shape: converts them to a scope, and results and errors to
 * responses.
 */
export const eventCodec: EventCodec<LambdaHttpEvent, LambdaHttpResult, HttpFacts> = {
  facts: (event, invocation) => {
    const shape = shapeOf(event);
    const { signal, deadlineMs, isolatedTo, nowMs } = invocation;
    const method = shape.method(event);
    const headers = shape.headers(event);
    return { shape, event, method, headers, signal, deadlineMs, isolatedTo, nowMs };
  },
  // Without middlewares, the error is from a keelson handler: its class determines the status on
  // every host.
  fail: (error, scope, facts) =>
    inBetween(failure(scope.hasMiddlewares ? fromMiddy(error) : error, scope, facts), scope, facts),
  finish: (given, scope, facts) => {
    const { shape } = facts;
    // Safe: without middlewares, `inBetween` returned the answer unchanged.
    const answer = scope.hasMiddlewares
      ? measured(readResult(given), facts)
      : (given as unknown as LambdaAnswer);
    const written = writeFinished(answer, scope, facts);
    const isFit = !isOver(shape.maxResultBytes, answer.body, written);
    const sent = isFit ? answer : failure(tooLarge(shape.maxResultBytes), scope, facts);
    const result = isFit ? written : writeFinished(sent, scope, facts);
    if (scope.runtime.observer !== undefined) tell(scope.runtime.observer, scope, sent, facts);
    return result;
  },
};

/** Reports an answer to the observer. Lambda does not reveal whether the client receives it. */
function tell(
  observer: RunObserver,
  scope: RequestScope,
  answer: LambdaAnswer,
  { method }: Pick<HttpFacts, "method">,
): void {
  const { statusCode: status, body, isBase64Encoded } = answer;
  const bytes =
    body === undefined ? 0 : Buffer.byteLength(body, isBase64Encoded === true ? "base64" : "utf8");
  observer.ended(scope, { kind: "request", method, status, bytes, isAborted: false });
}

/** Returns the error's uniform response, and logs the error. */
export function failure(error: unknown, scope: RequestScope, facts: HttpFacts): LambdaAnswer {
  const { status, headers, body } = fail(scope, facts, error);
  return {
    statusCode: status,
    headers,
    cookies: [],
    ...(typeof body === "string" ? { body } : {}),
  };
}

function writeFinished(
  answer: LambdaAnswer,
  scope: RequestScope,
  facts: HttpFacts,
): LambdaHttpResult {
  answer.headers = finish(scope, facts, answer.headers);
  return writeAnswer(answer, scope, facts);
}

/**
 * Corrects the `content-length` after a middleware has changed the body. For HEAD and 304, it
 * stays, because it describes a body that is not sent.
 */
function measured(answer: LambdaAnswer, { method }: Pick<HttpFacts, "method">): LambdaAnswer {
  const { statusCode, headers, body, isBase64Encoded } = answer;
  const { "content-length": length, ...others } = headers;
  if (length === undefined || method === "HEAD" || statusCode === 304) return answer;
  if (body === undefined) return { ...answer, headers: others };
  headers["content-length"] = String(
    Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8").byteLength,
  );
  return answer;
}

/**
 * Returns whether a result, as JSON, exceeds the limit of its transport. A character takes at most
 * six bytes, and headers a few kilobytes, so only large bodies are serialized for the measurement.
 */
function isOver(maxBytes: number, body: string | undefined, result: LambdaHttpResult): boolean {
  if (body === undefined || body.length * 6 < maxBytes - 65_536) return false;
  return Buffer.byteLength(JSON.stringify(result)) > maxBytes;
}
