import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { FrameworkError } from "../errors/errors.ts";
import { emptyHeaders } from "../http/header-map.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";

/** An HTTP API event (payload format 2.0), as a Lambda function gets it. */
export type HttpApiEvent = APIGatewayProxyEventV2;

/** What a Lambda function answers an HTTP API with. */
export type HttpApiResult = APIGatewayProxyStructuredResultV2;

/** @throws Error for an event of another kind. */
export function assertHttpApiEvent(event: HttpApiEvent): void {
  if (event?.version !== "2.0" || typeof event.requestContext?.http?.method !== "string") {
    throw new Error("the event is not of an HTTP API with payload format 2.0; check the function's trigger");
  }
}

/** The event's headers, names in lower case, none inherited. */
export function headersOf(event: HttpApiEvent): Record<string, string> {
  const headers = emptyHeaders();
  const given = event.headers ?? {};
  for (const name of Object.keys(given)) {
    const value = given[name];
    if (typeof value === "string") headers[name.toLowerCase()] = value;
  }
  if (event.cookies !== undefined && event.cookies.length > 0) headers["cookie"] = event.cookies.join("; ");
  return headers;
}

const noBytes = new Uint8Array(0);

/**
 * Reads an HTTP API event as a request.
 *
 * @param headers what `headersOf` makes of the event
 */
export function toHttpRequest(event: HttpApiEvent, headers: Readonly<Record<string, string>>): HttpRequest {
  const { http, stage } = event.requestContext;
  const path = event.rawPath ?? "/";
  const stagePrefix = stage === undefined || stage === "$default" ? undefined : `/${stage}`;
  const hasStage = stagePrefix !== undefined && (path === stagePrefix || path.startsWith(`${stagePrefix}/`));
  return {
    method: http.method,
    path: hasStage ? path.slice(stagePrefix.length) || "/" : path,
    query: event.rawQueryString ?? "",
    headers,
    ip: http.sourceIp,
    signal: undefined,
    gatewayClaims: verifiedClaims(event.requestContext),
    readBody: (limitBytes) => {
      const { body = "", isBase64Encoded } = event;
      if (body === "") return noBytes;
      const bytes = Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
      if (bytes.byteLength > limitBytes) throw new FrameworkError("payload_too_large", `The body is over ${limitBytes} bytes`);
      return bytes;
    },
  };
}

/** Claims that the gateway's authorizer verified; only the gateway writes `requestContext`. */
function verifiedClaims(requestContext: object): Readonly<Record<string, unknown>> | undefined {
  const { authorizer } = requestContext as { authorizer?: { jwt?: { claims?: unknown }; lambda?: unknown } };
  const claims = authorizer?.jwt?.claims ?? authorizer?.lambda;
  return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : undefined;
}

/** Writes a response as an HTTP API takes it. */
export function fromHttpResponse({ status, headers, cookies, body }: HttpResponse): HttpApiResult | Promise<HttpApiResult> {
  const result: HttpApiResult = { statusCode: status, headers };
  if (cookies.length > 0) result.cookies = [...cookies];
  if (body === undefined) return result;
  if (typeof body === "string") {
    result.body = body;
    return result;
  }
  const encoded = (bytes: Buffer) => ({ ...result, body: bytes.toString("base64"), isBase64Encoded: true });
  if (body instanceof Uint8Array) return encoded(Buffer.from(body));
  return new Response(body).arrayBuffer().then((bytes) => encoded(Buffer.from(bytes)));
}
