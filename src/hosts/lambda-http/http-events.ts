import type { RunObserver } from "../../app/observe/run-observer.ts";
import { routed } from "../../app/registry/registry.ts";
import { fail } from "../../app/run/failed-request.ts";
import { answer, finish } from "../../app/run/pipeline.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { createRouteTable } from "../../parts/http/route-table.ts";
import { bytesIn, whileWanted } from "../../parts/http/stream.ts";
import {
  HttpApi,
  type HttpApiEvent,
  type HttpApiResult,
  RestApi,
  type RestApiEvent,
  type RestApiResult,
} from "./api-gateway.ts";
import type { HttpEvent, LambdaAnswer, UnreadEvent, WholeBody } from "./codec.ts";
import { type Exchange, hasMiddlewares, type Invocation, scopeMode } from "./execution-mode.ts";
import type { MiddyFunction, Mode } from "./lazy-mode.ts";
import { LoadBalancer, type LoadBalancerEvent, type LoadBalancerResult } from "./load-balancer.ts";
import { kindOf } from "./other-event.ts";
import { base64Of, measured, readResult } from "./result.ts";
import { fromMiddy, runMiddlewares } from "./run-middlewares.ts";

export { createLambdaRuntime, loadSdkForHttp as loadSdk, openMeasuring } from "./lambda-runtime.ts";

/** Event that `lambdaHttp` and `lambdaHandler` answer. */
export type LambdaHttpEvent = HttpApiEvent | RestApiEvent | LoadBalancerEvent;

/** Lambda result for an event of the shape `Event`. */
export type LambdaHttpResult<Event extends LambdaHttpEvent = LambdaHttpEvent> =
  Event extends HttpApiEvent
    ? HttpApiResult
    : Event extends LoadBalancerEvent
      ? LoadBalancerResult
      : RestApiResult;

/** @param name - the only handler that the function calls; default: every handler with a route. */
export function httpMode(
  runtime: Runtime,
  name?: string,
  exchangeOf: ExchangeOf = (...given) => new RoutedExchange(...given),
): Mode {
  const declaration = name === undefined ? undefined : runtime.server.registry.handlers.get(name);
  const routes =
    declaration === undefined ? runtime.routes : createRouteTable(routed([declaration]));
  return scopeMode(runtime, (invocation, middy) =>
    exchangeOf(invocation, routes, hasMiddlewares(middy)),
  );
}

type ExchangeOf = (...given: ConstructorParameters<typeof RoutedExchange>) => RoutedExchange;

export type AnyHttpEvent = HttpEvent<LambdaHttpResult>;

export function httpEventOf(event: unknown): AnyHttpEvent | undefined {
  if (typeof event !== "object" || event === null) return undefined;
  const unread: UnreadEvent = event;
  if (HttpApi.matches(unread)) return new HttpApi(unread);
  if (RestApi.matches(unread)) return new RestApi(unread);
  return LoadBalancer.matches(unread) ? new LoadBalancer(unread) : undefined;
}

/** @throws Error if the event is not HTTP. */
function requireHttp(event: unknown): AnyHttpEvent {
  const http = httpEventOf(event);
  if (http !== undefined) return http;
  throw new Error(
    `the event is ${kindOf(event)}, not of a REST API, an HTTP API, a function URL or a load balancer; check the function's trigger`,
  );
}

export abstract class HttpExchange implements Exchange<LambdaAnswer> {
  readonly http: AnyHttpEvent;
  readonly headers: Readonly<Record<string, string>>;
  readonly hasMiddlewares: boolean;

  constructor(http: AnyHttpEvent, hasMiddlewares: boolean) {
    this.http = http;
    this.headers = http.headers();
    this.hasMiddlewares = hasMiddlewares;
  }

  abstract run(scope: RequestScope, middy: MiddyFunction): Promise<LambdaAnswer>;

  /** Without middlewares, only the class of the error determines the status, as on every host. */
  fail(error: unknown, scope: RequestScope): LambdaAnswer {
    return failure(this.hasMiddlewares ? fromMiddy(error) : error, scope, {
      method: this.http.method,
      headers: this.headers,
      signal: scope.signal,
    });
  }

  finish(answer: LambdaAnswer, scope: RequestScope): LambdaHttpResult | Promise<void> {
    const { maxResultBytes, method } = this.http;
    let sent = answer;
    let result = this.write(sent, scope);
    if (isOver(maxResultBytes, sent.body, result)) {
      sent = this.fail(tooLarge(maxResultBytes), scope);
      result = this.write(sent, scope);
    }
    if (scope.runtime.observer !== undefined) tell(scope.runtime.observer, scope, sent, method);
    return result;
  }

  /** @throws TypeError if the result of the middlewares is not a valid response. */
  protected read(result: unknown): LambdaAnswer {
    return measured(readResult(result), this.http.method);
  }

  protected write(answer: LambdaAnswer, scope: RequestScope): LambdaHttpResult {
    answer.headers = finish(scope, this, answer.headers);
    return writeAnswer(answer, scope, this.http);
  }
}

export class RoutedExchange extends HttpExchange {
  protected readonly invocation: Invocation;
  readonly routes: Runtime["routes"];

  constructor(invocation: Invocation, routes: Runtime["routes"], hasMiddlewares: boolean) {
    super(requireHttp(invocation.event), hasMiddlewares);
    this.invocation = invocation;
    this.routes = routes;
  }

  run(scope: RequestScope, middy: MiddyFunction): Promise<LambdaAnswer> {
    if (this.hasMiddlewares) return this.#runMiddlewares(scope, middy);
    const { http, headers } = this;
    return this.#answer(http.request(headers, scope), scope, http);
  }

  async #runMiddlewares(scope: RequestScope, middy: MiddyFunction): Promise<LambdaAnswer> {
    const { event, context } = this.invocation;
    const result = await runMiddlewares(middy, scope, {
      event,
      context,
      befores: middy.befores,
      handler: (changed) => this.#answerWithin(changed, scope),
    });
    return this.read(result);
  }

  /** Answers the event that the `before` hooks left, with a result for the `after` hooks. */
  async #answerWithin(event: unknown, scope: RequestScope): Promise<LambdaHttpResult> {
    const http = requireHttp(event);
    const request = http.request(http.headers(), scope);
    const { body } = http;
    if (typeof body === "object" && body !== null)
      request.readForm = async (limitBytes) => {
        const { parsedForm } = await import("./parsed-form.ts");
        return parsedForm(body, request.headers["content-type"], limitBytes);
      };
    try {
      return this.within(await this.#answer(request, scope, http), scope, http);
    } catch (error) {
      if (scope.signal?.aborted) throw error; // the deadline was already answered
      // Caught here, because Middy's error handler would turn every error into a 500.
      const { method, headers } = request;
      const failed = failure(error, scope, { method, headers, signal: undefined });
      return writeAnswer(failed, scope, http);
    }
  }

  /** Returns the result that the `after` hooks receive. */
  protected within(
    answer: LambdaAnswer,
    scope: RequestScope,
    http: AnyHttpEvent,
  ): LambdaHttpResult {
    return writeAnswer(answer, scope, http);
  }

  #answer(request: HttpRequest, scope: RequestScope, http: AnyHttpEvent): Promise<LambdaAnswer> {
    if (request.method !== "GET") request.assertFits = this.fits(http);
    return answer(scope, request, this.routes, (response) =>
      this.shaped(response, http, scope.signal),
    );
  }

  protected fits(http: AnyHttpEvent): HttpRequest["assertFits"] {
    return (response) => assertFits(response, http);
  }

  protected shaped(
    response: HttpResponse,
    { maxResultBytes }: AnyHttpEvent,
    signal: AbortSignal | undefined,
  ): LambdaAnswer | Promise<LambdaAnswer> {
    const { body } = response;
    return body === undefined || typeof body === "string" || body instanceof Uint8Array
      ? wholeAnswer(response, body)
      : collect(body, maxResultBytes, signal).then((bytes) => wholeAnswer(response, bytes));
  }
}

/** Converts an answer to its event's shape. Logs how many cookies the shape cannot carry. */
function writeAnswer(
  answer: LambdaAnswer,
  scope: RequestScope,
  http: AnyHttpEvent,
): LambdaHttpResult {
  const room = http.maxCookies;
  if (answer.cookies.length > room) {
    scope.log.error("response.cookies_dropped", {
      dropped: answer.cookies.length - room,
      fix: "turn on the target group's lambda.multi_value_headers.enabled",
    });
  }
  return http.write(answer);
}

/** Room for headers that are added later, such as the request's ID and `X-Keelson-Config`, in bytes. */
const headerRoom = 8_192;

/** @throws FrameworkError `response_too_large` if the response is too large for its transport. */
export function assertFits(response: Omit<HttpResponse, "cookies">, http: AnyHttpEvent): void {
  // Safe: only a query's response is a stream, and queries skip this check.
  const answer = wholeAnswer({ ...response, cookies: [] }, response.body as WholeBody);
  if (isOver(http.maxResultBytes - headerRoom, answer.body, http.write(answer)))
    throw tooLarge(http.maxResultBytes);
}

export function wholeAnswer(
  { status: statusCode, headers, cookies }: Omit<HttpResponse, "body">,
  body: WholeBody,
): LambdaAnswer {
  if (body === undefined || typeof body === "string") return { statusCode, headers, cookies, body };
  return { statusCode, headers, cookies, body: base64Of(body), isBase64Encoded: true };
}

function tooLarge(maxBytes: number): FrameworkError {
  return new FrameworkError(
    "response_too_large",
    `The response exceeds the ${maxBytes} bytes that its transport accepts`,
  );
}

/** @throws FrameworkError `response_too_large` once the stream exceeds `maxBytes`; the reason of `signal`. */
function collect(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const take = (chunk: Uint8Array) => {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
    return chunk;
  };
  return whileWanted(reader, signal, async () => {
    while ((await bytesIn(reader, reader.read(), take)) !== undefined);
    return Buffer.concat(chunks);
  });
}

/** Reports an answer as complete: Lambda does not reveal whether the client receives it. */
function tell(
  observer: RunObserver,
  scope: RequestScope,
  answer: LambdaAnswer,
  method: string,
): void {
  const { statusCode: status, body, isBase64Encoded } = answer;
  const bytes =
    body === undefined ? 0 : Buffer.byteLength(body, isBase64Encoded === true ? "base64" : "utf8");
  observer.ended(scope, { kind: "request", method, status, bytes, isAborted: false });
}

function failure(
  error: unknown,
  scope: RequestScope,
  request: Pick<HttpRequest, "method" | "headers" | "signal">,
): LambdaAnswer {
  const { status, headers, body } = fail(scope, request, error);
  return {
    statusCode: status,
    headers,
    cookies: [],
    body: typeof body === "string" ? body : undefined,
  };
}

/**
 * Returns whether a result, as JSON, exceeds the limit of its transport. A character takes at most
 * six bytes, and headers a few kilobytes, so only large bodies are measured.
 */
function isOver(maxBytes: number, body: string | undefined, result: LambdaHttpResult): boolean {
  if (body === undefined || body.length * 6 < maxBytes - 65_536) return false;
  return Buffer.byteLength(JSON.stringify(result)) > maxBytes;
}
