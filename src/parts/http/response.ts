import { serializeCookie } from "./cookies.ts";
import type { HttpResponse } from "./message.ts";
import { type Reply, replyBrand } from "./reply.ts";
import { assertStatus, checkedHeaders, cookiesOf } from "./reply-options.ts";
import { discard, isStreamed, webStreamOf } from "./stream.ts";
import { ReadResponse, UnreadableResponse } from "./web-response.ts";

/** What a response depends on beside the handler's result. */
export interface ResponseFacts {
  readonly kind: "query" | "write";
  /** A HEAD request: the same headers, no body. */
  readonly head: boolean;
  readonly development: boolean;
  /** The statuses that the handler declares. */
  readonly status?: readonly number[] | undefined;
}

const noCookies: readonly string[] = Object.freeze([]);

/** Statuses whose responses have no body (RFC 9110). */
const bodiless = [204, 205, 304];

/**
 * Turns what a handler returned into a response: a value is JSON with the status that its handler declares, 200 otherwise,
 * `undefined` 204, a reply what it says, and so is a web `Response` that has been read.
 *
 * @throws TypeError for a result that no response can be made of, saying which and what to do.
 */
export function toResponse(result: unknown, facts: ResponseFacts): HttpResponse {
  if (isReply(result)) return replied(result, facts);
  if (result instanceof ReadResponse)
    return respond(result.body, result.status, { ...result.headers }, result.cookies, facts);
  if (result instanceof UnreadableResponse) throw result.error;
  return respond(result, undefined, {}, noCookies, facts);
}

/**
 * The body of what a handler returned, for code that called it without HTTP.
 *
 * @throws TypeError for a `Response` that cannot be read.
 */
export function bodyOf(result: unknown): unknown {
  if (isReply(result)) return result.body;
  if (result instanceof UnreadableResponse) throw result.error;
  return result instanceof ReadResponse ? result.value : result;
}

/** A reply was held against this when it was made; it may be of another copy of the package, or changed since. */
function replied(
  { body, status, headers, cookies }: Reply<unknown>,
  facts: ResponseFacts,
): HttpResponse {
  if (status !== undefined) assertStatus(status);
  const set =
    cookies === undefined
      ? noCookies
      : cookiesOf(cookies).map(([name, cookie]) => serializeCookie(name, cookie, facts));
  return respond(body, status, checkedHeaders(headers), set, facts);
}

function respond(
  returned: unknown,
  given: number | undefined,
  headers: Record<string, string>,
  set: readonly string[],
  facts: ResponseFacts,
): HttpResponse {
  const body = returned instanceof ArrayBuffer ? new Uint8Array(returned) : returned;
  const status = given ?? statusOf(body, facts);
  if (body === undefined || bodiless.includes(status))
    return { status, headers, cookies: set, body: discard(body) };
  const content = contentOf(body, headers, facts.kind);
  if (!isStreamed(content)) headers["content-length"] = String(Buffer.byteLength(content));
  return { status, headers, cookies: set, body: facts.head ? discard(content) : content };
}

function statusOf(body: unknown, { status: declared }: ResponseFacts): number {
  if (declared === undefined) return body === undefined ? 204 : 200;
  return body === undefined && declared.includes(204) ? 204 : (declared[0] as number); // safe: boot refuses an empty list
}

function contentOf(
  body: unknown,
  headers: Record<string, string>,
  kind: "query" | "write",
): string | Uint8Array | ReadableStream<Uint8Array> {
  const isStream = isStreamed(body);
  if (typeof body !== "string" && !(body instanceof Uint8Array) && !isStream) {
    headers["content-type"] ??= "application/json; charset=utf-8";
    return jsonText(body);
  }
  const problem = problemOf(headers["content-type"], isStream && kind === "write");
  if (problem !== undefined) {
    discard(body);
    throw new TypeError(`reply: ${problem}`);
  }
  // Safe: whoever begins to read it holds its chunks to that.
  return isStream ? (webStreamOf(body) as ReadableStream<Uint8Array>) : body;
}

function problemOf(contentType: string | undefined, isStreamOfWrite: boolean): string | undefined {
  if (isStreamOfWrite) return "only a query may answer with a stream; return the whole body";
  if (contentType !== undefined) return undefined;
  return 'text, bytes and streams need a content type; add headers: { "content-type": "text/plain; charset=utf-8" }';
}

/** Whether a value is a reply. */
export function isReply(value: unknown): value is Reply<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as Partial<Reply<unknown>>)[replyBrand] === true
  );
}

/**
 * Whether a result is a web `Response`, of Node or of a library that brings its own. It looks at members: the first look at the
 * class loads all of `fetch`, and a cold start does without. Among them is a function, which no data of a client or of a row has.
 */
export function isWebResponse(result: unknown): result is Response {
  return (
    typeof result === "object" &&
    result !== null &&
    "bodyUsed" in result &&
    "headers" in result &&
    typeof Object(result.headers).getSetCookie === "function"
  );
}

/** The JSON of what a handler returned. @throws TypeError saying why there is none. */
export function jsonText(body: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (error) {
    throw new TypeError(
      `the result cannot be written as JSON (${reasonOf(error, body)}); return plain data`,
      { cause: error },
    );
  }
  if (text === undefined)
    throw new TypeError(
      `the result is a ${typeof body}, which JSON does not have; return plain data`,
    );
  return text;
}

/** Why `JSON.stringify` refused. A circle's own message names its path, over several lines; a BigInt's names nothing. */
function reasonOf(error: unknown, body: unknown): string {
  if (!(error instanceof Error)) return "it throws";
  const reason = error.message.replaceAll(/\s+/g, " ");
  const name = bigIntName(body);
  return name === undefined || name === "" ? reason : `${reason}, at ${JSON.stringify(name)}`;
}

/** The name under which the first BigInt stands; `undefined` where there is none, or where it cannot be reached. */
function bigIntName(body: unknown): string | undefined {
  let found: string | undefined;
  try {
    JSON.stringify(body, (name, value) => {
      if (typeof value === "bigint") found ??= name;
      return value;
    });
  } catch {
    // Expected: it failed before. What it passed on its way is what was wanted.
  }
  return found;
}
