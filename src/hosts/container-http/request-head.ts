import type { IncomingMessage } from "node:http";
import type { HeaderMap } from "../../parts/http/headers.ts";
import type { HttpRequest } from "../../parts/http/message.ts";

/** Returns Node's own object, because a copy took as long as creating it. */
export function headersOf({ headers }: IncomingMessage): HeaderMap {
  const { "set-cookie": list } = headers;
  return (
    list === undefined ? headers : { ...headers, "set-cookie": list.join(", ") }
  ) as HeaderMap; // safe: Node joins repeated headers except `set-cookie`
}

/** Returns the ID of Lambda's own logs, which Lambda removes from requests that claim one. */
export function platformFields({
  "lambda-web-request-id": id,
}: HeaderMap): HttpRequest["logFields"] {
  return id !== undefined && platformId.test(id) ? { platformRequestId: id } : undefined;
}

const platformId = /^[\w.:/+=@-]{1,128}$/;

/** Leaves out the host of `GET http://host/path`. */
export function splitTarget(target: string): { path: string; query: string } {
  const isLocal = target.startsWith("/") || !/^https?:\/\//i.test(target);
  const local = isLocal ? target : target.replace(/^https?:\/\/[^/?#]*/i, "") || "/";
  const mark = local.indexOf("?");
  return mark === -1
    ? { path: local, query: "" }
    : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}
