import { FrameworkError } from "../../base/errors/errors.ts";
import type { GatewayClaims } from "../../base/identity/claims.ts";
import { bodyTooLarge } from "../../parts/http/input.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";

/** One shape of HTTP event: how it is read as a request, and what answers it. */
export interface HttpCodec<Event, Result> {
  /** How large the JSON that answers such an event may be, in bytes. */
  readonly maxResultBytes: number;
  /** How many cookies an answer to the event can set. */
  maxCookies(event: Event): number;
  matches(event: Event): boolean;
  method(event: Event): string;
  /** A copy of the event's headers, names in lower case. */
  headers(event: Event): Record<string, string>;
  /** @param headers - what `headers` makes of the event */
  request(event: Event, headers: Readonly<Record<string, string>>, scope: EventScope): HttpRequest;
  /** Writes an answer in the shape of the event. */
  write(answer: LambdaAnswer, event: Event): Result;
}

/**
 * Whether an event has all that a request has, and is none: an API Gateway that asks a Lambda authorizer, whose answer is a
 * policy, or a message of a WebSocket, which some tools give a method.
 */
export function isNoRequest(event: { readonly requestContext: object }): boolean {
  return asksAuthorizer(event) || isOfSocket(event.requestContext);
}

/** Whether an event asks a Lambda authorizer. */
export function asksAuthorizer(event: object): boolean {
  return "methodArn" in event || "routeArn" in event;
}

/** Whether an event is a message of a WebSocket, by its request context. */
export function isOfSocket(requestContext: unknown): boolean {
  return (
    typeof (requestContext as { readonly connectionId?: unknown } | null | undefined)
      ?.connectionId === "string"
  );
}

/** What a request has beside its event. */
export interface EventScope {
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
}

/** An answer in the shape that all results have in common. */
export interface LambdaAnswer {
  readonly statusCode: number;
  /** Names in lower case, without `set-cookie`. */
  headers: Record<string, string>;
  readonly cookies: readonly string[];
  readonly body?: string | undefined;
  readonly isBase64Encoded?: boolean | undefined;
}

/** Turns a response whose body is there into an answer; bytes become base64. */
export function wholeAnswer({ status, headers, cookies, body }: WholeResponse): LambdaAnswer {
  if (body === undefined || typeof body === "string")
    return { statusCode: status, headers, cookies, body };
  return {
    statusCode: status,
    headers,
    cookies,
    body: asBuffer(body).toString("base64"),
    isBase64Encoded: true,
  };
}

/** A response that is no stream. */
export interface WholeResponse extends Omit<HttpResponse, "body"> {
  readonly body: Exclude<HttpResponse["body"], ReadableStream>;
}

/**
 * Turns the pipeline's response into an answer; bytes and streams become base64.
 *
 * @throws FrameworkError `response_too_large` for a stream, as soon as it is over `maxBytes`.
 */
export function toAnswer(
  response: HttpResponse,
  maxBytes: number,
): LambdaAnswer | Promise<LambdaAnswer> {
  const { body } = response;
  if (isWhole(body)) return wholeAnswer(response as WholeResponse); // safe: that is what was asked
  return collect(body, maxBytes).then((bytes) => wholeAnswer({ ...response, body: bytes }));
}

function isWhole(body: HttpResponse["body"]): body is WholeResponse["body"] {
  return body === undefined || typeof body === "string" || body instanceof Uint8Array;
}

/** What is said where an answer does not fit its transport. */
export function tooLarge(maxBytes: number): FrameworkError {
  return new FrameworkError(
    "response_too_large",
    `The response is over the ${maxBytes} bytes that its transport takes`,
  );
}

const noBytes = new Uint8Array(0);

/** A reader of an event's body: {@link HttpRequest.readBody}. */
export function bodyReader({ body, isBase64Encoded }: EventBody): HttpRequest["readBody"] {
  return (limitBytes) => {
    if (body === undefined || body === null || body === "") return noBytes;
    const bytes = bytesOf(body, isBase64Encoded === true);
    if (bytes.byteLength > limitBytes) throw bodyTooLarge(limitBytes);
    return bytes;
  };
}

/**
 * A reader of the form that a middleware before the handler has parsed: {@link HttpRequest.readForm}. Files of
 * `multipart/form-data` are as it left them.
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
    return body as Record<string, unknown>; // safe: any member of an object may be asked for
  };
}

const isForm = /^\s*(application\/x-www-form-urlencoded|multipart\/form-data)\s*(;|$)/i;
/** Deeper than fields, lists of them and the files among these. */
const maxFormDepth = 8;

/** The bytes of names and values. */
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

/** A text, or what a middleware before the handler made of JSON. */
function bytesOf(body: unknown, isBase64Encoded: boolean): Buffer {
  if (typeof body === "string") return Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
  try {
    if (typeof body === "object") return Buffer.from(JSON.stringify(body));
  } catch {
    // A circle, or nested deeper than the stack: no gateway sends such.
  }
  throw new FrameworkError("malformed_request", "The body of the event is not a text");
}

interface EventBody {
  readonly body?: unknown;
  readonly isBase64Encoded?: unknown;
}

/** A text of an event, which anybody may have sent who can invoke the function. */
export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

/** The path without the stage that some gateways leave in it. */
export function withoutStage(path: string, stage: unknown): string {
  if (typeof stage !== "string" || stage === "" || stage === "$default") return path;
  const prefix = `/${stage}`;
  return path === prefix || path.startsWith(`${prefix}/`) ? path.slice(prefix.length) || "/" : path;
}

/** Whether a path is the same decoded and encoded. */
export function isPlainPath(path: string): boolean {
  return !unplain.test(path);
}

const unplain = /[^\w.~!$&'()*+,;=:@/-]/;

/**
 * Encodes a path that a gateway has decoded, so that it is decoded once like any other. The gateway's `/` may have been
 * `%2F`: nobody can tell them apart any more.
 */
export function encodedPath(path: string): string {
  return isPlainPath(path)
    ? path
    : encodeURI(path.toWellFormed()).replaceAll(/[?#]/g, encodeURIComponent);
}

/** What an authorizer has verified, where it is an object. */
export function claimsBy(by: GatewayClaims["by"], claims: unknown): GatewayClaims | undefined {
  // Safe: an object of JSON.
  return typeof claims === "object" && claims !== null
    ? { by, claims: claims as Record<string, unknown> }
    : undefined;
}

async function collect(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the stream.
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
