import { FrameworkError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import { bodyTooLarge } from "../../parts/http/input.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";

/**
 * HTTP event of one shape. Converts itself to a request, and answers to results of the same shape.
 */
export interface HttpEvent<Result> {
  readonly method: string;
  /** Body as the gateway or a middleware left it. */
  readonly body: unknown;
  /** Maximum size of the result as JSON, in bytes. */
  readonly maxResultBytes: number;
  readonly maxCookies: number;
  /** Returns a copy of the headers, with names in lower case. */
  headers(): Record<string, string>;
  /** @param headers - result of `headers()`. */
  request(headers: Readonly<Record<string, string>>, scope: EventScope): HttpRequest;
  write(answer: LambdaAnswer): Result;
}

export interface UnreadEvent {
  readonly version?: unknown;
  readonly httpMethod?: unknown;
  readonly path?: unknown;
  readonly requestContext?: {
    readonly http?: { readonly method?: unknown } | null;
    readonly elb?: unknown;
    readonly stage?: unknown;
  } | null;
}

/**
 * Returns whether an event only looks like a request: a call of a Lambda authorizer, whose result
 * is a policy, or a WebSocket message, to which some tools add a method.
 */
export function isNoRequest(event: UnreadEvent): boolean {
  return asksAuthorizer(event) || isOfSocket(event.requestContext);
}

export function asksAuthorizer(event: object): boolean {
  return "methodArn" in event || "routeArn" in event;
}

export function isOfSocket(requestContext: unknown): boolean {
  return (
    typeof (requestContext as { readonly connectionId?: unknown } | null | undefined)
      ?.connectionId === "string"
  );
}

export interface EventScope {
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
}

/** Response before its conversion to a result of the event's shape. */
export interface LambdaAnswer {
  readonly statusCode: number;
  /** Headers, with names in lower case and without `set-cookie`. */
  headers: Record<string, string>;
  readonly cookies: readonly string[];
  readonly body?: string | undefined;
  readonly isBase64Encoded?: boolean | undefined;
}

/** Converts a response with a complete body. Bytes become base64. */
export function wholeAnswer(
  { status: statusCode, headers, cookies }: Omit<HttpResponse, "body">,
  body: WholeBody,
): LambdaAnswer {
  if (body === undefined || typeof body === "string") return { statusCode, headers, cookies, body };
  const text = asBuffer(body).toString("base64");
  return { statusCode, headers, cookies, body: text, isBase64Encoded: true };
}

export type WholeBody = Exclude<HttpResponse["body"], ReadableStream>;

/**
 * Converts the pipeline's response. Bytes and streams become base64.
 *
 * @throws FrameworkError `response_too_large` once a stream exceeds `maxBytes`.
 */
export function toAnswer(
  response: HttpResponse,
  maxBytes: number,
): LambdaAnswer | Promise<LambdaAnswer> {
  const { body } = response;
  if (isWhole(body)) return wholeAnswer(response, body);
  return collect(body, maxBytes).then((bytes) => wholeAnswer(response, bytes));
}

function isWhole(body: HttpResponse["body"]): body is WholeBody {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array;
}

export function tooLarge(maxBytes: number): FrameworkError {
  return new FrameworkError(
    "response_too_large",
    `The response is over the ${maxBytes} bytes that its transport takes`,
  );
}

const noBytes = new Uint8Array(0);

export function bodyReader({ body, isBase64Encoded }: EventBody): HttpRequest["readBody"] {
  return (limitBytes) => {
    if (body === undefined || body === null || body === "") return noBytes;
    const bytes = bytesOf(body, isBase64Encoded === true);
    if (bytes.byteLength > limitBytes) throw bodyTooLarge(limitBytes);
    return bytes;
  };
}

/**
 * Creates the reader of a form that a middleware has parsed; `undefined` for any other body. Files
 * of `multipart/form-data` stay in the form that the middleware chose.
 */
export function formReader(
  body: unknown,
  contentType: string | undefined,
): HttpRequest["readForm"] {
  if (
    typeof body !== "object" ||
    body === null ||
    Array.isArray(body) ||
    !isForm.test(contentType ?? "")
  )
    return undefined;
  return (limitBytes) => {
    if (sizeOf(body, 0) > limitBytes)
      throw new FrameworkError("payload_too_large", `The body is over ${limitBytes} bytes`);
    return body as Record<string, unknown>; // safe: any member of an object may be read
  };
}

const isForm = /^\s*(application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i;
/** Maximum nesting of a form. Fields, lists of fields and files in lists need less. */
const maxFormDepth = 8;

function sizeOf(value: unknown, depth: number): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value !== "object" || value === null) return 0;
  if (depth === maxFormDepth)
    throw new FrameworkError(
      "malformed_request",
      `The form is nested deeper than ${maxFormDepth} levels`,
    );
  return Object.entries(value).reduce(
    (sum, [name, part]) => sum + Buffer.byteLength(name) + sizeOf(part, depth + 1),
    0,
  );
}

/** Returns the bytes of a body: a string, or a value that a middleware has parsed from JSON. */
function bytesOf(body: unknown, isBase64Encoded: boolean): Buffer {
  if (typeof body === "string") return Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
  try {
    if (typeof body === "object") return Buffer.from(JSON.stringify(body));
  } catch {
    // A cycle, or nesting deeper than the stack allows. No gateway sends either.
  }
  throw new FrameworkError("malformed_request", "The body of the event is not a text");
}

interface EventBody {
  readonly body?: unknown;
  readonly isBase64Encoded?: unknown;
}

/**
 * Returns a value of an event, or `otherwise` if it is not a string: any caller allowed to invoke
 * the function may have created the event.
 */
export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

/** Removes the stage that some gateways leave in the path. */
export function withoutStage(path: string, stage: unknown): string {
  if (typeof stage !== "string" || stage === "" || stage === "$default") return path;
  const prefix = `/${stage}`;
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) || "/" : path;
}

/** Returns whether a path is the same in decoded and encoded form. */
export function isPlainPath(path: string): boolean {
  return !unplain.test(path);
}

const unplain = /[^\w.~!$&'()*+,;=:@/-]/;

/**
 * Encodes a path that a gateway has decoded, because the router decodes every path. A `/` may have
 * been sent as `%2F`; the two are indistinguishable.
 */
export function encodedPath(path: string): string {
  return isPlainPath(path)
    ? path
    : encodeURI(path.toWellFormed()).replaceAll(/[?#]/g, encodeURIComponent);
}

export function claimsBy(by: GatewayClaims["by"], claims: unknown): GatewayClaims | undefined {
  // Safe: the object was parsed from JSON.
  return typeof claims === "object" && claims !== null
    ? { by, claims: claims as Record<string, unknown> }
    : undefined;
}

async function collect(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // A throw leaves the loop, which cancels the stream.
  for await (const chunk of stream) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
