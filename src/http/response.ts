import { serializeCookie } from "./cookies.ts";
import type { HttpResponse } from "./message.ts";
import { isReply, type ReplyOptions } from "./reply.ts";

/** What a response depends on beside the handler's result. */
export interface ResponseFacts {
  readonly kind: "query" | "write";
  /** A HEAD request: the same headers, no body. */
  readonly head: boolean;
  readonly development: boolean;
}

/** Headers that are the framework's to set. */
const own = ["x-request-id", "content-length", "transfer-encoding", "connection", "set-cookie"];

/**
 * Turns what a handler returned into a response: a value is 200 JSON, `undefined` 204, a reply
 * what it says.
 *
 * @throws TypeError for a result that no response can be made of, saying which and what to do.
 */
export function toResponse(result: unknown, facts: ResponseFacts): HttpResponse {
  const { body, status: given, headers: extra, cookies } = isReply(result) ? result : wrapped(result);
  const status = given ?? (body === undefined ? 204 : 200);
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`reply: status ${status} is not a whole number from 200 to 599`);
  const headers = checkedHeaders(extra);
  const response = {
    status,
    headers,
    cookies: Object.entries(cookies ?? {}).map(([name, cookie]) => serializeCookie(name, cookie, facts)),
  };
  if (body === undefined || status === 204 || status === 304) return { ...response, body: undefined };
  const content = contentOf(body, headers, facts.kind);
  if (!(content instanceof ReadableStream)) headers["content-length"] = String(Buffer.byteLength(content));
  return { ...response, body: facts.head ? undefined : content };
}

function wrapped(body: unknown): ReplyOptions & { readonly body: unknown } {
  return { body };
}

function checkedHeaders(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower))
      throw new TypeError(`reply: header ${JSON.stringify(name)} has no valid name`);
    if (own.includes(lower))
      throw new TypeError(
        `reply: header ${name} is set by keelson; leave it out${lower === "set-cookie" ? ", and use `cookies`" : ""}`,
      );
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(String(value)))
      throw new TypeError(`reply: header ${name} has a character that a header cannot carry`);
    headers[lower] = String(value);
  }
  return headers;
}

function contentOf(
  body: unknown,
  headers: Record<string, string>,
  kind: "query" | "write",
): string | Uint8Array | ReadableStream<Uint8Array> {
  const isRaw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
  if (!isRaw) {
    headers["content-type"] ??= "application/json; charset=utf-8";
    return jsonText(body);
  }
  if (headers["content-type"] === undefined) {
    throw new TypeError(
      'reply: text, bytes and streams need a content type; add headers: { "content-type": "text/plain; charset=utf-8" }',
    );
  }
  if (body instanceof ReadableStream && kind === "write")
    throw new TypeError("reply: only a query may answer with a stream; return the whole body");
  return body;
}

function jsonText(body: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    throw new TypeError(
      `the result cannot be written as JSON (${error instanceof Error ? error.message.split("\n")[0] : "it throws"}); return plain data`,
      { cause: error },
    );
  }
  if (text === undefined) throw new TypeError(`the result is a ${typeof body}, which JSON does not have; return plain data`);
  return text;
}
