import type { Readable } from "node:stream";
import type { HttpResponse } from "./message.ts";
import {
  assertStatus,
  checkedHeaders,
  cookiesOf,
  guard,
  isNodeStream,
  type Reply,
  replyBrand,
} from "./reply.ts";
import { serializeCookie } from "./serialize-cookie.ts";
import { ReadResponse, UnreadableResponse } from "./web-response.ts";

export interface ResponseFacts {
  readonly kind: "query" | "write";
  /** Whether to leave out the body. */
  readonly head: boolean;
  readonly development: boolean;
  readonly status?: readonly number[] | undefined;
}

const noCookies: readonly string[] = Object.freeze([]);

const bodiless = [204, 205, 304];

/**
 * A value becomes JSON with the declared status, 200 by default, and `undefined` 204. A reply or a
 * web `Response` sets status, headers and body itself. @throws TypeError with the reason and a fix.
 */
export function toResponse(result: unknown, facts: ResponseFacts): HttpResponse {
  if (isReply(result)) return replied(result, facts);
  if (result instanceof ReadResponse)
    return respond(result.body, result.status, { ...result.headers }, result.cookies, facts);
  if (result instanceof UnreadableResponse) throw result.error;
  return respond(result, undefined, {}, noCookies, facts);
}

/** Body for code without HTTP. @throws TypeError for a `Response` that cannot be read. */
export function bodyOf(result: unknown): unknown {
  if (isReply(result)) return result.body;
  if (result instanceof UnreadableResponse) throw result.error;
  return result instanceof ReadResponse ? result.value : result;
}

/** Checks the reply again: it may come from another copy of the package, or have changed. */
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
  if (body === undefined || bodiless.includes(status)) {
    // Without a length, Node would send an empty chunked body, and Chromium takes the end of a 205's
    // body for the beginning of the next response.
    if (status === 205) headers["content-length"] = "0";
    return { status, headers, cookies: set, body: discard(body) };
  }
  const content = contentOf(body, headers, facts.kind);
  if (!isWebStream(content)) headers["content-length"] = String(Buffer.byteLength(content));
  return { status, headers, cookies: set, body: facts.head ? discard(content) : content };
}

function statusOf(body: unknown, { status: declared }: ResponseFacts): number {
  if (declared === undefined) return body === undefined ? 204 : 200;
  return body === undefined && declared.includes(204) ? 204 : (declared[0] as number); // safe: boot rejects an empty list
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
  // The cast is safe: `begun` checks each chunk when the stream is read.
  return isStream ? (webStreamOf(body) as ReadableStream<Uint8Array>) : body;
}

function problemOf(contentType: string | undefined, isStreamOfWrite: boolean): string | undefined {
  if (isStreamOfWrite) return "only a query may answer with a stream; return the whole body";
  if (contentType !== undefined) return undefined;
  return 'text, bytes and streams need a content type; add headers: { "content-type": "text/plain; charset=utf-8" }';
}

type Streamed = ReadableStream<unknown> | Readable | AsyncIterable<unknown>;

/** The first read pulls the first chunk. @throws TypeError for a stream that is only writable. */
function webStreamOf(source: Streamed): ReadableStream<unknown> {
  if (isWebStream(source)) return source;
  if (!(Symbol.asyncIterator in source)) {
    throw new TypeError(
      "reply: the body is a stream that cannot be read; pass a Readable, a web stream or an async iterable",
    );
  }
  guard(source);
  const iterator = source[Symbol.asyncIterator]();
  const end = async () => iterator.return?.();
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      // Not awaited: a waiting generator would block the cancellation. No caller is left for its
      // error.
      cancel() {
        if (isNodeStream(source)) source.destroy();
        else end().catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

function discard(body: unknown): undefined {
  // Canceling fails if the stream is locked or its source broken, which the response survives.
  if (isStreamed(body)) cancelled(body).catch(() => undefined);
}

async function cancelled(body: Streamed): Promise<void> {
  await webStreamOf(body).cancel();
}

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

/** V8's message has several lines for a circular structure, and no member's name for a BigInt. */
function reasonOf(error: unknown, body: unknown): string {
  if (!(error instanceof Error)) return "it throws";
  const reason = error.message.replaceAll(/\s+/g, " ");
  const name = bigIntName(body);
  return name === undefined || name === "" ? reason : `${reason}, at ${JSON.stringify(name)}`;
}

function bigIntName(body: unknown): string | undefined {
  let found: string | undefined;
  try {
    JSON.stringify(body, (name, value) => {
      if (typeof value === "bigint") found ??= name;
      return value;
    });
  } catch {
    // Serializing fails again, but the replacer has seen the BigInt by then.
  }
  return found;
}

export function isReply(value: unknown): value is Reply<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as Partial<Reply<unknown>>)[replyBrand] === true
  );
}

/**
 * Checks members: a library may have its own class, and the first access to Node's loads all of
 * `fetch`, which slows a cold start. Data cannot have the function `getSetCookie`.
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

/**
 * Checks `getReader` first: the first access to `ReadableStream` loads all of Node's web streams,
 * which costs 1.4 ms of a cold start.
 */
export function isWebStream(body: unknown): body is ReadableStream<Uint8Array> {
  return (
    typeof body === "object" &&
    body !== null &&
    "getReader" in body &&
    body instanceof ReadableStream
  );
}

/** Includes Node streams that are only writable: as JSON, they would expose their internals. */
function isStreamed(body: unknown): body is Streamed {
  if (typeof body !== "object" || body === null) return false;
  return (
    Symbol.asyncIterator in body || ("pipe" in body && isNodeStream(body)) || isWebStream(body)
  );
}

/** Whether an `output` schema applies: not to a stream, bytes, an error or a redirect. */
export function isDescribed(result: unknown): boolean {
  if (result instanceof UnreadableResponse) return false;
  if (result instanceof ReadResponse) return result.isJson && result.status < 300;
  if (!isReply(result)) return !isRaw(result);
  return (result.status ?? 200) < 300 && !isRaw(result.body);
}

function isRaw(body: unknown): boolean {
  return body instanceof Uint8Array || body instanceof ArrayBuffer || isStreamed(body);
}
