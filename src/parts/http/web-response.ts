import { isUtf8 } from "node:buffer";
import { FrameworkError } from "../../base/errors/errors.ts";
import { assertHeaderValue, assertStatus, checkedHeaders } from "./reply-options.ts";
import { whileWanted } from "./stream.ts";

/** A web `Response` that has been read: what it says, and its body as far as it is there. */
export class ReadResponse {
  readonly status: number;
  /** Names in lower case, without `set-cookie`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie`, as the handler wrote them. */
  readonly cookies: readonly string[];
  /** Text where it is JSON or text in UTF-8; `undefined` where there is none. A stream only in a query's. */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;

  constructor({
    status,
    headers,
    cookies,
    body,
  }: Pick<ReadResponse, "status" | "headers" | "cookies" | "body">) {
    this.status = status;
    this.headers = headers;
    this.cookies = cookies;
    this.body = body;
  }

  /** Whether the body is whole and said to be JSON, in whatever charset. */
  get isJson(): boolean {
    return isJsonBody(this.headers, this.body);
  }

  /** The body as code that calls the handler gets it: JSON is parsed. @throws TypeError for JSON that cannot be read. */
  get value(): unknown {
    return parsedBody(this.headers, this.body);
  }
}

/** A `Response` that no answer can be made of. What its handler did is done, so the error is the answer, and is not thrown. */
export class UnreadableResponse {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** How {@link readResponse} reads a body. */
export interface Reading {
  /** Whether the JSON of a query is read to its end too, since its value is checked or parsed. */
  readonly needsJson?: boolean;
  /** Ends the reading of a query's body. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a `Response` that a handler returned. A write's is read to its end; so is a query's whose body is there already,
 * while one that is still being made stays a stream. Never throws.
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
    if (response.body === null)
      return new ReadResponse({ status, headers, cookies, body: undefined });
    headers["content-type"] ??= "application/octet-stream";
    const isNeeded = kind === "write" || (needsJson && json.test(headers["content-type"]));
    const body = isNeeded
      ? await wholeBody(response.body, kind === "write" ? undefined : signal)
      : await begunBody(response.body);
    return new ReadResponse({
      status,
      headers,
      cookies,
      body: isWhole(body) ? textOr(body, headers["content-type"]) : body,
    });
  } catch (error) {
    response.body?.cancel().catch(() => undefined); // nobody will read it; one that is locked stays with who has it
    return new UnreadableResponse(error);
  }
}

const used =
  "reply: the body of the Response has been read already; return another Response, or response.clone() from before";
/** The most bytes of a `Response` that is held in memory: a write's, which may be stored, and JSON whose value is needed. */
const maxWholeBytes = 10_485_760;
/** A JSON MIME type as the WHATWG defines it, such as `application/problem+json`. The first of several joined types counts. */
const json = /^\s*(?:(?:application|text)\/json|[^\s/;,]+\/[^\s/;,]+\+json)\s*(?:[;,]|$)/i;
const text = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript)\s*(?:;|$))/i;
const otherCharset = /;\s*charset\s*=\s*"?(?!utf-?8\b)/i;
const charset = /;\s*charset\s*=\s*"?([^\s;,"]*)"?/i;

type Body = ReadableStream<Uint8Array>;

/** A body of one chunk is whole: what is made of a text or of bytes ends in the same turn of the event loop. */
async function begunBody(stream: Body): Promise<Uint8Array | Body> {
  const reader = stream.getReader();
  const first = await reader.read();
  if (first.done) return new Uint8Array(0);
  const second = reader.read();
  const next = await Promise.race([second, nextTurn()]);
  if (next?.done === true) return bytesOf(first.value);
  second.catch(() => undefined); // it fails whoever reads on; nobody may
  const begun = [Promise.resolve(first), second];
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await (begun.shift() ?? reader.read());
      if (done) controller.close();
      else controller.enqueue(bytesOf(value));
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** @throws FrameworkError `response_too_large`, without reading on; the reason of `signal`. */
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
    reader.releaseLock(); // so that whoever gives up on the stream can cancel it
  }
}

const tooLarge = `The response is over the ${maxWholeBytes} bytes that one may have which is read before it is sent`;

function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}

/** A stream of a handler's own may have chunks of anything. */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  throw new TypeError(
    `reply: the stream of the Response has a chunk of type ${typeof chunk}; give it Uint8Array`,
  );
}

function isWhole(body: Uint8Array | Body): body is Uint8Array {
  return body instanceof Uint8Array;
}

/** The text of bytes that are one, since a gateway passes text on as it is; its bytes are the same. */
function textOr(bytes: Uint8Array, contentType: string): string | Uint8Array {
  const isText = text.test(contentType) && !otherCharset.test(contentType) && isUtf8(bytes);
  return isText ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() : bytes;
}

type Headers = Readonly<Record<string, string>>;

/** Whether a body is whole and said to be JSON. */
function isJsonBody(headers: Headers, body: unknown): body is string | Uint8Array {
  return (
    (typeof body === "string" || body instanceof Uint8Array) &&
    json.test(String(headers["content-type"]))
  );
}

/** The body as code reads it: parsed JSON, any other body unchanged. @throws TypeError for JSON that cannot be parsed. */
export function parsedBody(headers: Headers, body: unknown): unknown {
  if (!isJsonBody(headers, body)) return body;
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity") {
    throw new TypeError(
      "reply: the JSON of the Response is compressed; return it as it is, without a content-encoding",
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

/** @throws TypeError for bytes that are not valid in the charset of the content type, RangeError for an unknown charset. */
function decoded(bytes: Uint8Array, contentType: string): string {
  const [, label] = charset.exec(contentType) ?? [];
  return new TextDecoder(label || "utf-8", { fatal: true }).decode(bytes);
}

/** The content type with the charset UTF-8, in which JSON is written. */
export function inUtf8(contentType: string): string {
  return otherCharset.test(contentType)
    ? contentType.replace(charset, "; charset=utf-8")
    : contentType;
}
