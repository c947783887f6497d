import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import {
  bodyReader,
  claimsBy,
  type EventScope,
  encodedPath,
  type HttpEvent,
  isNoRequest,
  type LambdaAnswer,
  type UnreadEvent,
  withoutStage,
} from "./codec.ts";
import { eventHeaders, joinQuery } from "./listed-values.ts";

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

  request(
    headers: Readonly<Record<string, string>>,
    { signal, deadlineMs }: EventScope,
  ): HttpRequest {
    const event = this.#event;
    return {
      method: this.method,
      path: path(event),
      query: joinQuery(
        event.queryStringParameters,
        event.multiValueQueryStringParameters,
        encodeURIComponent,
      ),
      headers,
      ip: event.requestContext.identity?.sourceIp,
      signal,
      deadlineMs,
      assertFits: undefined,
      gatewayClaims: verifiedClaims(event),
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
 * Returns the encoded path without the stage. A REST API passes the path on as sent. An HTTP API
 * decodes it and includes the stage, even in format 1.0. Only an HTTP API's event has a `version`.
 */
function path(event: RestApiEvent): string {
  return isOfHttpApi(event)
    ? encodedPath(withoutStage(event.path, event.requestContext.stage))
    : event.path;
}

function isOfHttpApi(event: RestApiEvent): boolean {
  return (event as { version?: unknown }).version === "1.0";
}

/**
 * Returns the claims that the gateway's authorizer verified: a Cognito or JWT authorizer writes
 * them to `claims`, a Lambda authorizer next to `principalId`. Only the gateway writes
 * `requestContext`, so they are trusted.
 */
function verifiedClaims(event: RestApiEvent): GatewayClaims | undefined {
  const { authorizer } = event.requestContext as {
    authorizer?: { claims?: unknown; principalId?: unknown } | null;
  };
  const verified = claimsBy(isOfHttpApi(event) ? "jwt" : "cognito", authorizer?.claims);
  return (
    verified ?? (authorizer?.principalId === undefined ? undefined : claimsBy("lambda", authorizer))
  );
}
