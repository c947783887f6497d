import { FrameworkError } from "../../base/errors/errors.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";

/** HTTP event of one shape. Becomes a request, and turns its answer into a result of the shape. */
export interface HttpEvent<Result> {
  readonly method: string;
  /** Body as the gateway or a middleware left it. */
  readonly body: unknown;
  /** Maximum size of the result as JSON, in bytes. */
  readonly maxResultBytes: number;
  readonly maxCookies: number;
  /** Returns a copy, with names in lower case. */
  headers(): Record<string, string>;
  /** @param headers - result of `headers()`. */
  request(headers: HttpRequest["headers"], scope: EventScope): HttpRequest;
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

export interface EventScope {
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
}

export interface LambdaAnswer {
  readonly statusCode: number;
  /** Headers, with names in lower case and without `set-cookie`. */
  headers: Record<string, string>;
  readonly cookies: readonly string[];
  readonly body?: string | undefined;
  readonly isBase64Encoded?: boolean | undefined;
  /** Body of a response that streams, in place of `body`. */
  readonly content?: Uint8Array | ReadableStream<Uint8Array> | undefined;
}

export type WholeBody = Exclude<HttpResponse["body"], ReadableStream>;

/**
 * Creates the reader of a form that a middleware has parsed, if it has. Files of
 * `multipart/form-data` stay in the form that the middleware chose.
 */
export function formReader(
  body: unknown,
  contentType: string | undefined,
): HttpRequest["readForm"] {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  if (!isForm.test(contentType ?? "")) return undefined;
  return (limitBytes) => {
    if (sizeOf(body, 0) > limitBytes)
      throw new FrameworkError("payload_too_large", `The body exceeds ${limitBytes} bytes`);
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
  if (depth === maxFormDepth) {
    const message = `The form is nested deeper than ${maxFormDepth} levels`;
    throw new FrameworkError("malformed_request", message);
  }
  return Object.entries(value).reduce(
    (sum, [name, part]) => sum + Buffer.byteLength(name) + sizeOf(part, depth + 1),
    0,
  );
}
