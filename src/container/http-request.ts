import type { IncomingMessage } from "node:http";
import { emptyHeaders, type HeaderMap } from "../http/headers.ts";

/** The headers of a message; its repeated ones Node has joined, `set-cookie` alone it has as a list. */
export function headersOf({ headers: received }: IncomingMessage): HeaderMap {
  const headers = Object.assign(emptyHeaders(), received) as HeaderMap; // safe: the list is replaced below
  if (received["set-cookie"] !== undefined) headers["set-cookie"] = received["set-cookie"].join(", ");
  return headers;
}

/** Splits a request target; an absolute one (`GET http://host/path`) is as good as its path. */
export function splitTarget(target: string): { path: string; query: string } {
  const isLocal = target.startsWith("/") || !/^https?:\/\//i.test(target);
  const local = isLocal ? target : target.replace(/^https?:\/\/[^/?#]*/i, "") || "/";
  const mark = local.indexOf("?");
  return mark === -1 ? { path: local, query: "" } : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

/** No body at all. */
export const noBytes = new Uint8Array(0);
