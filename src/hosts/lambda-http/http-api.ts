import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import { copyHeaders } from "../../parts/http/headers.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import {
  bodyReader,
  claimsBy,
  type EventScope,
  encodedPath,
  type HttpEvent,
  isNoRequest,
  isPlainPath,
  type LambdaAnswer,
  textOf,
  type UnreadEvent,
  withoutStage,
} from "./codec.ts";

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

  request(
    headers: Readonly<Record<string, string>>,
    { signal, deadlineMs }: EventScope,
  ): HttpRequest {
    const event = this.#event;
    return {
      method: this.method,
      path: path(event),
      query: textOf(event.rawQueryString),
      headers,
      ip: event.requestContext.http.sourceIp,
      signal,
      deadlineMs,
      assertFits: undefined,
      gatewayClaims: verifiedClaims(event.requestContext),
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

/**
 * Returns the encoded path of an event. An HTTP API decodes paths; a function URL passes them on as
 * sent.
 */
function path({ rawPath, requestContext }: HttpApiEvent): string {
  const path = withoutStage(textOf(rawPath, "/"), requestContext.stage);
  return isPlainPath(path) || isAsSent(textOf(requestContext.domainName))
    ? path
    : encodedPath(path);
}

/**
 * Returns whether an event's path is encoded as the client sent it. A function URL's event contains
 * the URL's own domain, even if the client used another domain. Two emulators do the opposite of
 * AWS: LocalStack decodes the paths of function URLs, and serverless-offline decodes no paths.
 */
function isAsSent(domainName: string): boolean {
  if (domainName.includes(".lambda-url.")) return !domainName.includes(".localstack.cloud");
  return domainName === "offlineContext_domainName";
}

/**
 * Returns the claims that the gateway's authorizer verified. Only the gateway writes
 * `requestContext`, so they are trusted.
 */
function verifiedClaims(requestContext: object): GatewayClaims | undefined {
  const { authorizer } = requestContext as {
    authorizer?: { jwt?: { claims?: unknown }; lambda?: unknown };
  };
  const jwt = authorizer?.jwt?.claims ?? undefined;
  return jwt === undefined ? claimsBy("lambda", authorizer?.lambda) : claimsBy("jwt", jwt);
}
