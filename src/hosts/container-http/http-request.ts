import type { IncomingMessage } from "node:http";
import type { HeaderMap } from "../../parts/http/headers.ts";

/**
 * Returns Node's own headers object, because a copy took as long as creating that object. Node
 * joins repeated headers, except `set-cookie`, which it keeps as a list.
 */
export function headersOf({ headers }: IncomingMessage): HeaderMap {
  const { "set-cookie": list } = headers;
  return (
    list === undefined ? headers : { ...headers, "set-cookie": list.join(", ") }
  ) as HeaderMap; // safe: all headers except `set-cookie` are strings
}

/** Splits a request target into path and query, without the host of `GET http://host/path`. */
export function splitTarget(target: string): { path: string; query: string } {
  const isLocal = target.startsWith("/") || !/^https?:\/\//i.test(target);
  const local = isLocal ? target : target.replace(/^https?:\/\/[^/?#]*/i, "") || "/";
  const mark = local.indexOf("?");
  return mark === -1
    ? { path: local, query: "" }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

export const noBytes = new Uint8Array(0);
