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
