import type {
  APIGatewayProxyEvent,
  APIGatewayProxyEventV2,
  APIGatewayProxyResult,
  APIGatewayProxyStructuredResultV2,
} from "aws-lambda";
import { FrameworkError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import { copyHeaders } from "../../parts/http/headers.ts";
import { bodyTooLarge } from "../../parts/http/input.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { EventScope, HttpEvent, LambdaAnswer, UnreadEvent } from "./codec.ts";
import { eventHeaders, joinQuery } from "./listed-values.ts";

/** Lambda event of an HTTP API (payload format 2.0) or of a function URL. */
export type HttpApiEvent = APIGatewayProxyEventV2;

/** Lambda result for an HTTP API or a function URL. */
export type HttpApiResult = APIGatewayProxyStructuredResultV2;

export class HttpApi implements HttpEvent<HttpApiResult> {
  readonly #event: HttpApiEvent;
  readonly method: string;
  readonly maxResultBytes = 6_291_456;
  readonly maxCookies = Number.POSITIVE_INFINITY;

  constructor(event: HttpApiEvent) {
    this.#event = event;
    this.method = event.requestContext.http.method;
  }

  static matches(event: UnreadEvent): event is HttpApiEvent {
    return (
      event.version === "2.0" &&
      typeof event.requestContext?.http?.method === "string" &&
      !isNoRequest(event)
    );
  }

  get body(): unknown {
    return this.#event.body;
  }

  headers(): Record<string, string> {
    const { headers: single, cookies } = this.#event;
    const headers = copyHeaders(single ?? {});
    if (Array.isArray(cookies) && cookies.length > 0) headers["cookie"] = cookies.join("; ");
    return headers;
  }

  request(headers: HttpRequest["headers"], { signal, deadlineMs }: EventScope): HttpRequest {
    const event = this.#event;
    const { requestContext } = event;
    // Only the gateway writes `requestContext`, so its claims are trusted.
    const { authorizer } = requestContext as {
      authorizer?: { jwt?: { claims?: unknown }; lambda?: unknown };
    };
    const jwt = authorizer?.jwt?.claims ?? undefined;
    return {
      method: this.method,
      path: httpApiPath(event),
      query: textOf(event.rawQueryString),
      headers,
      ip: requestContext.http.sourceIp,
      signal,
      deadlineMs,
      assertFits: undefined,
      gatewayClaims:
        jwt === undefined ? claimsBy("lambda", authorizer?.lambda) : claimsBy("jwt", jwt),
      readBody: bodyReader(event),
    };
  }

  write({ statusCode, headers, cookies, body, isBase64Encoded }: LambdaAnswer): HttpApiResult {
    const result: HttpApiResult = { statusCode, headers };
    if (cookies.length > 0) result.cookies = [...cookies];
    if (body !== undefined) result.body = body;
    if (isBase64Encoded !== undefined) result.isBase64Encoded = isBase64Encoded;
    return result;
  }
}

/** Returns the encoded path. An HTTP API decodes paths; a function URL passes them on as sent. */
function httpApiPath({ rawPath, requestContext }: HttpApiEvent): string {
  const path = withoutStage(textOf(rawPath, "/"), requestContext.stage);
  return isPlainPath(path) || isAsSent(textOf(requestContext.domainName))
    ? path
    : encodedPath(path);
}

/**
 * A function URL's event contains the URL's own domain, even if the client used another. Two
 * emulators do the opposite of AWS: LocalStack decodes the paths of function URLs, and
 * serverless-offline decodes no paths.
 */
function isAsSent(domainName: string): boolean {
  if (domainName.includes(".lambda-url.")) return !domainName.includes(".localstack.cloud");
  return domainName === "offlineContext_domainName";
}

/** Lambda event of a REST API, or of an HTTP API with payload format 1.0. */
export type RestApiEvent = APIGatewayProxyEvent;

/** Lambda result for a REST API. */
export type RestApiResult = APIGatewayProxyResult;

export class RestApi implements HttpEvent<RestApiResult> {
  readonly #event: RestApiEvent;
  readonly method: string;
  readonly maxResultBytes = 6_291_456;
  readonly maxCookies = Number.POSITIVE_INFINITY;

  constructor(event: RestApiEvent) {
    this.#event = event;
    this.method = event.httpMethod;
  }

  static matches(event: UnreadEvent): event is RestApiEvent {
    const { httpMethod, path, requestContext } = event;
    return (
      typeof httpMethod === "string" &&
      typeof path === "string" &&
      typeof requestContext === "object" &&
      requestContext !== null &&
      !("elb" in requestContext) &&
      !isNoRequest(event)
    );
  }

  get body(): unknown {
    return this.#event.body;
  }

  headers(): Record<string, string> {
    return eventHeaders(this.#event.headers, this.#event.multiValueHeaders);
  }

  request(headers: HttpRequest["headers"], { signal, deadlineMs }: EventScope): HttpRequest {
    const event = this.#event;
    const { path, requestContext } = event;
    // A REST API passes the path on as sent. An HTTP API decodes it and includes the stage, even in
    // format 1.0. Only an HTTP API's event has a `version`.
    const isOfHttpApi = (event as { version?: unknown }).version === "1.0";
    return {
      method: this.method,
      path: isOfHttpApi ? encodedPath(withoutStage(path, requestContext.stage)) : path,
      query: joinQuery(
        event.queryStringParameters,
        event.multiValueQueryStringParameters,
        encodeURIComponent,
      ),
      headers,
      ip: requestContext.identity?.sourceIp,
      signal,
      deadlineMs,
      assertFits: undefined,
      gatewayClaims: restClaims(requestContext, isOfHttpApi ? "jwt" : "cognito"),
      readBody: bodyReader(event),
    };
  }

  write(answer: LambdaAnswer): RestApiResult {
    const { statusCode, headers, cookies, body = "", isBase64Encoded = false } = answer;
    return {
      statusCode,
      headers,
      ...(cookies.length === 0 ? {} : { multiValueHeaders: { "set-cookie": [...cookies] } }),
      body,
      isBase64Encoded,
    };
  }
}

/**
 * Returns verified claims: a Cognito or JWT authorizer writes them to `claims`, a Lambda authorizer
 * next to `principalId`. Only the gateway writes `requestContext`, so they are trusted.
 */
function restClaims(
  requestContext: RestApiEvent["requestContext"],
  by: GatewayClaims["by"],
): GatewayClaims | undefined {
  const { authorizer } = requestContext as {
    authorizer?: { claims?: unknown; principalId?: unknown } | null;
  };
  const ofLambda = authorizer?.principalId === undefined ? undefined : authorizer;
  return claimsBy(by, authorizer?.claims) ?? claimsBy("lambda", ofLambda);
}

/**
 * Whether an event only looks like a request: a call of a Lambda authorizer, whose result is a
 * policy, or a WebSocket message, to which some tools add a method.
 */
function isNoRequest(event: UnreadEvent): boolean {
  return asksAuthorizer(event) || isOfSocket(event.requestContext);
}

export function asksAuthorizer(event: object): boolean {
  return "methodArn" in event || "routeArn" in event;
}

export function isOfSocket(requestContext: unknown): boolean {
  const { connectionId }: { readonly connectionId?: unknown } = Object(requestContext);
  return typeof connectionId === "string";
}

/** The value may be of any type: any caller allowed to invoke the function creates events. */
function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

/** Removes the stage that some gateways leave in the path. */
function withoutStage(path: string, stage: unknown): string {
  if (typeof stage !== "string" || stage === "" || stage === "$default") return path;
  const prefix = `/${stage}`;
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) || "/" : path;
}

/** Whether a path is the same in decoded and encoded form. */
function isPlainPath(path: string): boolean {
  return !unplain.test(path);
}

const unplain = /[^\w.~!$&'()*+,;=:@/-]/;

/**
 * Encodes a path that a gateway has decoded, because the router decodes every path. A `/` may have
 * been sent as `%2F`; the two are indistinguishable.
 */
function encodedPath(path: string): string {
  return isPlainPath(path)
    ? path
    : encodeURI(path.toWellFormed()).replaceAll(/[?#]/g, encodeURIComponent);
}

function claimsBy(by: GatewayClaims["by"], claims: unknown): GatewayClaims | undefined {
  // Safe: the object was parsed from JSON.
  return typeof claims === "object" && claims !== null
    ? { by, claims: claims as Record<string, unknown> }
    : undefined;
}

const noBytes = new Uint8Array(0);

export function bodyReader({
  body,
  isBase64Encoded,
}: {
  readonly body?: unknown;
  readonly isBase64Encoded?: unknown;
}): HttpRequest["readBody"] {
  return (limitBytes) => {
    if (body === undefined || body === null || body === "") return noBytes;
    const bytes = bytesOf(body, isBase64Encoded === true);
    if (bytes.byteLength > limitBytes) throw bodyTooLarge(limitBytes);
    return bytes;
  };
}

/** The body may be a value that a middleware has parsed from JSON. */
function bytesOf(body: unknown, isBase64Encoded: boolean): Buffer {
  if (typeof body === "string") return Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
  try {
    if (typeof body === "object") return Buffer.from(JSON.stringify(body));
  } catch {
    // A cycle, or nesting deeper than the stack allows. No gateway sends either.
  }
  throw new FrameworkError("malformed_request", "The body of the event is not a string");
}
