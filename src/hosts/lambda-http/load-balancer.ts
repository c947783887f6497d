import type { ALBEvent, ALBResult } from "aws-lambda";
import { forwardedAddress } from "../../parts/http/forwarded-address.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import { bodyReader } from "./api-gateway.ts";
import type { EventScope, HttpEvent, LambdaAnswer, UnreadEvent } from "./codec.ts";
import { eventHeaders, joinQuery } from "./listed-values.ts";

/** Lambda event of an Application Load Balancer. */
export type LoadBalancerEvent = ALBEvent;

/** Lambda result for an Application Load Balancer. */
export type LoadBalancerResult = ALBResult;

/**
 * Event of an Application Load Balancer, with or without multi-value headers. keelson never treats
 * its claims as verified, because any client that reaches the function can send the header
 * `x-amzn-oidc-data`.
 */
export class LoadBalancer implements HttpEvent<LoadBalancerResult> {
  readonly #event: LoadBalancerEvent;
  readonly method: string;
  readonly maxResultBytes = 1_000_000;

  constructor(event: LoadBalancerEvent) {
    this.#event = event;
    this.method = event.httpMethod;
  }

  static matches(event: UnreadEvent): event is LoadBalancerEvent {
    const { httpMethod, path, requestContext } = event;
    return (
      typeof httpMethod === "string" &&
      typeof path === "string" &&
      typeof requestContext?.elb === "object"
    );
  }

  get maxCookies(): number {
    return hasLists(this.#event) ? Number.POSITIVE_INFINITY : 1;
  }

  get body(): unknown {
    return this.#event.body;
  }

  headers(): Record<string, string> {
    return eventHeaders(this.#event.headers, this.#event.multiValueHeaders);
  }

  request(headers: HttpRequest["headers"], { signal, deadlineMs }: EventScope): HttpRequest {
    const event = this.#event;
    return {
      method: this.method,
      path: event.path,
      query: joinQuery(
        event.queryStringParameters,
        event.multiValueQueryStringParameters,
        (text) => text,
      ),
      headers,
      // The load balancer writes the last entry; the client can forge all others.
      ip: forwardedAddress(headers["x-forwarded-for"], 1),
      signal,
      deadlineMs,
      assertFits: undefined,
      gatewayClaims: undefined,
      readBody: bodyReader(event),
    };
  }

  write(answer: LambdaAnswer): LoadBalancerResult {
    const { statusCode, headers, cookies, body = "", isBase64Encoded = false } = answer;
    const description = statusDescription(statusCode);
    const result = { statusCode, statusDescription: description, body, isBase64Encoded };
    if (!hasLists(this.#event)) {
      const [cookie] = cookies; // one value per name, so one cookie
      return {
        ...result,
        headers: cookie === undefined ? headers : { ...headers, "set-cookie": cookie },
      };
    }
    const lists: Record<string, string[]> = {};
    for (const [name, value] of Object.entries(headers)) lists[name] = [value];
    if (cookies.length > 0) lists["set-cookie"] = [...cookies];
    return { ...result, multiValueHeaders: lists };
  }
}

/**
 * Whether the target group has multi-value headers enabled. Its events then contain only lists; a
 * middleware may add empty lists to others.
 */
function hasLists({ headers, multiValueHeaders }: LoadBalancerEvent): boolean {
  if (multiValueHeaders === undefined || multiValueHeaders === null) return false;
  return headers === undefined || headers === null || Object.keys(multiValueHeaders).length > 0;
}

/** Loads `node:http`, because its import would add 20 ms to every cold start. */
function statusDescription(status: number): string {
  const reason = process.getBuiltinModule("node:http").STATUS_CODES[status];
  return reason === undefined ? String(status) : `${status} ${reason}`;
}
