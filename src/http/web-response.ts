import { isUtf8 } from "node:buffer";
import { FrameworkError } from "../errors/errors.ts";
import { assertHeaderValue, assertStatus, checkedHeaders } from "./reply-options.ts";

/** A web `Response` that has been read: what it says, and its body as far as it is there. */
export class ReadResponse {
  readonly status: number;
  /** Names in lower case, without `set-cookie`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values of `set-cookie`, as the handler wrote them. */
  readonly cookies: readonly string[];
  /** Text where it is JSON or text in UTF-8; `undefined` where there is none. A stream only in a query's. */
  readonly body: string | Uint8Array | ReadableStream<Uint8Array> | undefined;

  constructor({ status, headers, cookies, body }: Pick<ReadResponse, "status" | "headers" | "cookies" | "body">) {
    this.status = status;
    this.headers = headers;
    this.cookies = cookies;
    this.body = body;
  }

  /** Whether the body is a whole text of JSON. */
  get isJson(): boolean {
    return typeof this.body === "string" && json.test(String(this.headers["content-type"]));
  }

  /** The body as code that calls the handler gets it: JSON is parsed. @throws TypeError for JSON that is none. */
  get value(): unknown {
    if (!this.isJson) return this.body;
    try {
      return JSON.parse(this.body as string); // safe: it is text
    } catch (cause) {
      throw new TypeError("reply: the Response says that its body is JSON, and it is not; change its content type", { cause });
    }
  }
}

/** A `Response` that no answer can be made of. What its handler did is done, so the error is the answer, and is not thrown. */
export class UnreadableResponse {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/**
 * Reads a `Response` that a handler returned. A write's is read to its end; so is a query's whose body is there already,
 * while one that is still being made stays a stream. Never throws.
 */
export async function readResponse(response: Response, kind: "query" | "write"): Promise<ReadResponse | UnreadableResponse> {
  try {
    const { status, headers: given } = response;
    assertStatus(status);
    const cookies = given.getSetCookie();
    for (const cookie of cookies) assertHeaderValue("set-cookie", cookie);
    const headers = checkedHeaders(Object.fromEntries([...given].filter(([name]) => name !== "set-cookie")));
    if (response.bodyUsed || response.body?.locked === true) throw new TypeError(used);
    if (response.body === null) return new ReadResponse({ status, headers, cookies, body: undefined });
    headers["content-type"] ??= "application/octet-stream";
    const body = kind === "query" ? await begunBody(response.body) : await wholeBody(response.body);
    return new ReadResponse({ status, headers, cookies, body: isWhole(body) ? textOr(body, headers["content-type"]) : body });
  } catch (error) {
    response.body?.cancel().catch(() => undefined); // nobody will read it; one that is locked stays with who has it
    return new UnreadableResponse(error);
  }
}

const used = "reply: the body of the Response has been read already; return another Response, or response.clone() from before";
/** The most bytes of a write's `Response`, which is held in memory and may be stored. */
const maxWriteBytes = 10_485_760;
const json = /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
const text = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|javascript)\s*(?:;|$))/i;
const otherCharset = /;\s*charset\s*=\s*"?(?!utf-?8\b)/i;

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

/** @throws FrameworkError `response_too_large`, without reading on. */
async function wholeBody(stream: Body): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of stream) {
    length += bytesOf(chunk).byteLength;
    if (length > maxWriteBytes) {
      throw new FrameworkError("response_too_large", `The response is over the ${maxWriteBytes} bytes that a write's may have`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}

/** A stream of a handler's own may have chunks of anything. */
function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  throw new TypeError(`reply: the stream of the Response has a chunk of type ${typeof chunk}; give it Uint8Array`);
}

function isWhole(body: Uint8Array | Body): body is Uint8Array {
  return body instanceof Uint8Array;
}

/** The text of bytes that are one, since a gateway passes text on as it is; its bytes are the same. */
function textOr(bytes: Uint8Array, contentType: string): string | Uint8Array {
  const isText = text.test(contentType) && !otherCharset.test(contentType) && isUtf8(bytes);
  return isText ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() : bytes;
}
