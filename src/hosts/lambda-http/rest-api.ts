import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import type { GatewayClaims } from "../../base/identity/claims.ts";
import {
  bodyReader,
  claimsBy,
  encodedPath,
  type HttpCodec,
  isNoRequest,
  withoutStage,
} from "./codec.ts";
import { eventHeaders } from "./headers.ts";
import { joinQuery } from "./query.ts";

/** Lambda event of a REST API, or of an HTTP API with payload format 1.0. */
export type RestApiEvent = APIGatewayProxyEvent;

/** Lambda result for a REST API. */
export type RestApiResult = APIGatewayProxyResult;

/** Codec for REST APIs and for HTTP APIs with payload format 1.0. */
export const restApi: HttpCodec<RestApiEvent, RestApiResult> = {
  maxResultBytes: 6_291_456,
  maxCookies: () => Number.POSITIVE_INFINITY,
  matches: (event) =>
    typeof event.httpMethod === "string" &&
    typeof event.path === "string" &&
    isObject(event.requestContext) &&
    !("elb" in event.requestContext) &&
    !isNoRequest(event),
  method: (event) => event.httpMethod,
  headers: (event) => eventHeaders(event.headers, event.multiValueHeaders),
  request: (event, headers, { signal, deadlineMs }) => ({
    method: event.httpMethod,
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
  }),
  write: ({ statusCode, headers, cookies, body = "", isBase64Encoded = false }) => ({
    statusCode,
    headers,
    ...(cookies.length === 0 ? {} : { multiValueHeaders: { "set-cookie": [...cookies] } }),
    body,
    isBase64Encoded,
  }),
};

/**
 * Returns the encoded path without a stage. A REST API's path has no stage and is as sent. An HTTP
 * API's has one and is decoded, even in format 1.0; only its events have a version.
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
 * Returns the claims that the gateway's authorizer verified: a Cognito or JWT authorizer's are in
 * `claims`, a Lambda authorizer's next to its `principalId`. Only the gateway writes
 * `requestContext`.
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

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
