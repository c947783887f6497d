import type { IncomingMessage } from "node:http";
import type { HeaderMap } from "../../parts/http/headers.ts";

/**
 * The headers of a message, Node's own object: copying it took as long as making it. Repeated ones Node has joined,
 * `set-cookie` alone it has as a list.
 */
export function headersOf({ headers }: IncomingMessage): HeaderMap {
  const { "set-cookie": list } = headers;
  return (
    list === undefined ? headers : { ...headers, "set-cookie": list.join(", ") }
  ) as HeaderMap; // safe: all others are texts
}

/** Splits a request target; an absolute one (`GET http://host/path`) is as good as its path. */
export function splitTarget(target: string): { path: string; query: string } {
  const isLocal = target.startsWith("/") || !/^https?:\/\//i.test(target);
  const local = isLocal ? target : target.replace(/^https?:\/\/[^/?#]*/i, "") || "/";
  const mark = local.indexOf("?");
  return mark === -1
    ? { path: local, query: "" }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

/** No body at all. */
export const noBytes = new Uint8Array(0);
