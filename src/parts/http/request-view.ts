import type { RequestView } from "../../base/request/request-view.ts";
import { parseCookies } from "./cookies.ts";
import type { HttpRequest } from "./message.ts";

/** Creates a handler's view of the request. Parses the cookies at the first access. */
export function requestView(
  { method, path, headers, ip }: HttpRequest,
  rawBody: Uint8Array,
): RequestView {
  let cookies: Readonly<Record<string, string>> | undefined;
  return Object.freeze({
    method,
    path,
    headers: Object.freeze(Object.assign(Object.create(null), headers)),
    get cookies() {
      cookies ??= Object.freeze(parseCookies(headers["cookie"]));
      return cookies;
    },
    ip,
    rawBody,
  });
}
