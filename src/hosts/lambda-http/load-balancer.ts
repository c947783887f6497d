import type { ALBEvent, ALBResult } from "aws-lambda";
import { bodyReader, type HttpCodec } from "./codec.ts";
import { eventHeaders } from "./headers.ts";
import { joinQuery } from "./query.ts";

/** Lambda event of an Application Load Balancer. */
export type LoadBalancerEvent = ALBEvent;

/** Lambda result for an Application Load Balancer. */
export type LoadBalancerResult = ALBResult;

/**
 * Codec for Application Load Balancers, with or without multi-value headers. No claims count as
 * verified: any client that reaches the function can send the header `x-amzn-oidc-data`.
 */
export const loadBalancer: HttpCodec<LoadBalancerEvent, LoadBalancerResult> = {
  maxResultBytes: 1_000_000,
  maxCookies: (event) => (hasLists(event) ? Number.POSITIVE_INFINITY : 1),
  matches: (event) =>
    typeof event.httpMethod === "string" &&
    typeof event.path === "string" &&
    typeof event.requestContext?.elb === "object",
  method: (event) => event.httpMethod,
  headers: (event) => eventHeaders(event.headers, event.multiValueHeaders),
  request: (event, headers, { signal, deadlineMs }) => ({
    method: event.httpMethod,
    path: event.path,
    query: joinQuery(
      event.queryStringParameters,
      event.multiValueQueryStringParameters,
      (text) => text,
    ),
    headers,
    // The load balancer writes the last entry; the client can forge all others.
    ip: headers["x-forwarded-for"]?.split(",").at(-1)?.trim(),
    signal,
    deadlineMs,
    assertFits: undefined,
    gatewayClaims: undefined,
    readBody: bodyReader(event),
  }),
  write: ({ statusCode, headers, cookies, body = "", isBase64Encoded = false }, event) => {
    const result = {
      statusCode,
      statusDescription: statusDescription(statusCode),
      body,
      isBase64Encoded,
    };
    if (!hasLists(event)) {
      const [cookie] = cookies; // one value per name, so only one cookie
      return {
        ...result,
        headers: cookie === undefined ? headers : { ...headers, "set-cookie": cookie },
      };
    }
    const lists: Record<string, string[]> = {};
    for (const [name, value] of Object.entries(headers)) lists[name] = [value];
    if (cookies.length > 0) lists["set-cookie"] = [...cookies];
    return { ...result, multiValueHeaders: lists };
  },
};

/**
 * Returns whether the target group has multi-value headers: its events contain only lists. A
 * middleware may add empty ones to other events.
 */
function hasLists({ headers, multiValueHeaders }: LoadBalancerEvent): boolean {
  if (multiValueHeaders === undefined || multiValueHeaders === null) return false;
  return headers === undefined || headers === null || Object.keys(multiValueHeaders).length > 0;
}

/**
 * Returns the status line, such as `404 Not Found`. An import of `node:http` would add 20 ms to
 * every cold start.
 */
function statusDescription(status: number): string {
  const reason = process.getBuiltinModule("node:http").STATUS_CODES[status];
  return reason === undefined ? String(status) : `${status} ${reason}`;
}
