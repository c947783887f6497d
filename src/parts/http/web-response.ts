import { isUtf8 } from "node:buffer";
import { FrameworkError } from "../../base/errors/errors.ts";
import { assertHeaderValue, assertStatus, checkedHeaders } from "./reply.ts";
import { bytesIn, whileWanted } from "./stream.ts";

/** Web `Response` of a handler, as plain values. Only a query's body can be a stream. */
export class ReadResponse {
  readonly status: number;
  /** Headers without `set-cookie`, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: readonly string[];
  /** A string if the body is JSON or text in UTF-8. */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;

  constructor(given: Pick<ReadResponse, "status" | "headers" | "cookies" | "body">) {
    this.status = given.status;
    this.headers = given.headers;
    this.cookies = given.cookies;
    this.body = given.body;
  }

  /** Whether the body is complete and declared as JSON, in any charset. */
  get isJson(): boolean {
    return isJsonBody(this.headers, this.body);
  }

  /** Body for code without HTTP, with JSON parsed. @throws TypeError for invalid JSON. */
  get value(): unknown {
    return parsedBody(this.headers, this.body);
  }
}

/** Its handler has done its work, so the error is the answer. */
export class UnreadableResponse {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

interface Reading {
  /** Whether the value of a query's JSON is validated or parsed, so that all of it is read. */
  readonly needsJson?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a `Response` that a handler returned. Never throws. A query's body stays a stream, unless
 * it is already complete or `needsJson` applies.
 */
export async function readResponse(
  response: Response,
  kind: "query" | "write",
  { needsJson = false, signal }: Reading = {},
): Promise<ReadResponse | UnreadableResponse> {
  try {
    const { status, headers: given } = response;
    assertStatus(status);
    const cookies = given.getSetCookie();
    for (const cookie of cookies) assertHeaderValue("set-cookie", cookie);
    const headers = checkedHeaders(
      Object.fromEntries([...given].filter(([name]) => name !== "set-cookie")),
    );
    if (response.bodyUsed || response.body?.locked === true) throw new TypeError(used);
    const facts = { status, headers, cookies };
    if (response.body === null) return new ReadResponse({ ...facts, body: undefined });
    headers["content-type"] ??= "application/octet-stream";
    const isNeeded = kind === "write" || (needsJson && json.test(headers["content-type"]));
    const body = isNeeded
      ? await wholeBody(response.body, kind === "write" ? undefined : signal)
      : await begunBody(response.body, signal);
    const whole = body instanceof Uint8Array ? textOr(body, headers["content-type"]) : body;
    return new ReadResponse({ ...facts, body: whole });
  } catch (error) {
    response.body?.cancel().catch(() => undefined); // fails if a reader has locked it
    return new UnreadableResponse(error);
  }
}

const used =
  "reply: the body of the Response has been read already; return another Response, or response.clone() from before";
const maxWholeBytes = 10_485_760;
/** JSON MIME type of the WHATWG, such as `application/problem+json`: the first of joined types. */
const json = /^\s*(?:(?:application|text)\/json|[^\s/;,]+\/[^\s/;,]+\+json)\s*(?:[;,]|$)/i;
const text = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript)\s*(?:;|$))/i;
const otherCharset = /;\s*charset\s*=\s*"?(?!utf-?8\b)/i;
const charset = /;\s*charset\s*=\s*"?([^\s;,"]*)"?/i;

type Body = ReadableStream<Uint8Array>;

/**
 * Returns the bytes of a body that ends after one chunk in the same event loop turn, such as a
 * string or bytes, otherwise a stream. @throws `signal`'s reason before the first chunk.
 */
async function begunBody(
  stream: Body,
  signal: AbortSignal | undefined,
): Promise<Uint8Array | Body> {
  const reader = stream.getReader();
  const chunk = (reading = reader.read()) => bytesIn(reader, reading, bytesOf);
  let first = await whileWanted(reader, signal, chunk);
  if (first === undefined) return new Uint8Array(0);
  const second = reader.read();
  const next = await Promise.race([second, nextTurn()]);
  if (next?.done === true) return first;
  second.catch(() => undefined); // handled: `pull` awaits the same promise
  const begun = [second];
  return new ReadableStream({
    async pull(controller) {
      const bytes = first ?? (await chunk(begun.shift()));
      first = undefined;
      if (bytes === undefined) controller.close();
      else controller.enqueue(bytes);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** @throws FrameworkError `response_too_large`, without reading the rest; `signal`'s reason. */
async function wholeBody(stream: Body, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const reader = stream.getReader();
  try {
    return await whileWanted(reader, signal, async () => {
      const chunks: Uint8Array[] = [];
      let length = 0;
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const chunk = bytesOf(read.value);
        length += chunk.byteLength;
        if (length > maxWholeBytes) throw new FrameworkError("response_too_large", tooLarge);
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    });
  } finally {
    reader.releaseLock(); // so that the stream can be canceled
  }
}

const tooLarge = `The response exceeds the ${maxWholeBytes} bytes of a response that is read before it is sent`;

function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  throw new TypeError(
    `reply: the stream of the Response has a chunk of type ${typeof chunk}; give it Uint8Array`,
  );
}

/** A gateway passes text on unchanged, in the same bytes. */
function textOr(bytes: Uint8Array, contentType: string): string | Uint8Array {
  const isText = text.test(contentType) && !otherCharset.test(contentType) && isUtf8(bytes);
  return isText ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() : bytes;
}

type Headers = Readonly<Record<string, string>>;

function isJsonBody(headers: Headers, body: unknown): body is string | Uint8Array {
  return (
    (typeof body === "string" || body instanceof Uint8Array) &&
    json.test(String(headers["content-type"]))
  );
}

/** Parses a JSON body, and returns any other unchanged. @throws TypeError for invalid JSON. */
export function parsedBody(headers: Headers, body: unknown): unknown {
  if (!isJsonBody(headers, body)) return body;
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new TypeError(
      "reply: the JSON of the Response is compressed; return it unencoded, without a content-encoding",
    );
  }
  try {
    return JSON.parse(
      typeof body === "string"
        ? body.replace(/^\ufeff/, "")
        : decoded(body, String(headers["content-type"])),
    );
  } catch (cause) {
    throw new TypeError(
      "reply: the Response says that its body is JSON, and it is not; change its content type",
      { cause },
    );
  }
}

/** @throws TypeError for invalid bytes, RangeError for an unknown charset. */
function decoded(bytes: Uint8Array, contentType: string): string {
  const [, label] = charset.exec(contentType) ?? [];
  return new TextDecoder(label || "utf-8", { fatal: true }).decode(bytes);
}

/** Content type of JSON that keelson writes: another charset is replaced by UTF-8. */
export function inUtf8(contentType: string): string {
  return otherCharset.test(contentType)
    ? contentType.replace(charset, "; charset=utf-8")
    : contentType;
}
