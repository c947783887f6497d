import { defined } from "../../../base/types/defined.ts";
import type { Caller } from "./caller.ts";

/** Options of `app.fetch`. */
export interface TestFetchOptions {
  /** HTTP method. Default `GET`, or `POST` if there is a body. */
  readonly method?: string;
  /**
   * Request body. Objects are sent as JSON. Strings, bytes, `Blob`, `FormData` and
   * `URLSearchParams` are sent as `fetch` sends them.
   */
  readonly body?: unknown;
  /** Request headers. Default: only those that the body needs. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Cancels the request. Default: none. */
  readonly signal?: AbortSignal;
  /** Signs the request in as this caller. */
  readonly as?: Caller;
}

const raw = [Uint8Array, ArrayBuffer, Blob, FormData, URLSearchParams] as const;

function isRaw(body: unknown): body is RequestInit["body"] {
  return body === undefined || typeof body === "string" || raw.some((type) => body instanceof type);
}

/** Returns the request as `fetch` takes it. Headers of the options replace equal ones in `before`. */
export function requestInit(
  { body, headers, method }: Pick<TestFetchOptions, "body" | "headers" | "method">,
  before: Readonly<Record<string, string>> = {},
) {
  const own = Object.entries(headers ?? {}).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  return {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      ...before,
      ...(!isRaw(body) && { "content-type": "application/json" }),
      ...Object.fromEntries(own),
    },
    ...defined({ body: isRaw(body) ? body : JSON.stringify(body) }),
  };
}
