import { defined } from "../../../base/types/defined.ts";
import type { Caller } from "./caller.ts";

/** Options of `app.fetch`. */
export interface TestFetchOptions {
  /** HTTP method. Default `GET`. */
  readonly method?: string;
  /** Request body. Objects are sent as JSON, strings, bytes and a `FormData` unchanged. */
  readonly body?: unknown;
  /** Request headers. Default: only those that the body needs. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Cancels the request. Default: none. */
  readonly signal?: AbortSignal;
  /** Signs the request in as this caller. */
  readonly as?: Caller;
}

/** Returns the request as `fetch` takes it. Headers of the options replace equal ones in `before`. */
export function requestInit(
  { body, headers, method }: Pick<TestFetchOptions, "body" | "headers" | "method">,
  before: Readonly<Record<string, string>> = {},
) {
  const isRaw =
    body === undefined ||
    typeof body === "string" ||
    body instanceof Uint8Array ||
    body instanceof FormData;
  return {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { ...before, ...(!isRaw && { "content-type": "application/json" }), ...headers },
    ...defined({ body: isRaw ? body : JSON.stringify(body) }),
  };
}
