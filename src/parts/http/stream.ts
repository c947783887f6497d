import type { Readable } from "node:stream";
import { guard, isNodeStream } from "./node-stream.ts";

/** Streamed body: a web stream, a Node stream, or another async iterable of text and bytes. */
export type Streamed = ReadableStream<unknown> | Readable | AsyncIterable<unknown>;

/**
 * Checks for `getReader` first: the first access to the class loads all of Node's web streams,
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

/**
 * Checks whether a body is streamed. Writable Node streams count too: as JSON they would expose
 * their internals.
 */
export function isStreamed(body: unknown): body is Streamed {
  if (typeof body !== "object" || body === null) return false;
  return Symbol.asyncIterator in body || isNodeStream(body) || isWebStream(body);
}

/**
 * Converts a streamed body to a web stream, which pulls its first chunk at the first read.
 *
 * @throws TypeError for a Node stream that is only writable.
 */
export function webStreamOf(source: Streamed): ReadableStream<unknown> {
  if (isWebStream(source)) return source;
  if (!(Symbol.asyncIterator in source)) {
    throw new TypeError(
      "reply: the body is a stream that cannot be read; pass a Readable, a web stream or an async iterable",
    );
  }
  guard(source);
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      // Does not await `return`: a generator that is itself waiting would block the cancellation.
      cancel() {
        if (isNodeStream(source)) source.destroy();
        else void ended(iterator);
      },
    },
    { highWaterMark: 0 },
  );
}

async function ended(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // The response has ended, so no caller is left for this error.
  }
}

/** Cancels a stream that will not be read, so that its source is released. */
export function discard(body: unknown): undefined {
  // The answer does not depend on this. Canceling fails if the stream is locked or its source
  // broken.
  if (isStreamed(body)) cancelled(body).catch(() => undefined);
}

async function cancelled(body: Streamed): Promise<void> {
  await webStreamOf(body).cancel();
}

/**
 * Reads the first chunk of a stream before its response starts, and converts text to bytes. A
 * stream that fails earlier causes an ordinary error instead of a truncated response.
 *
 * @throws the stream's error; TypeError for a chunk that is neither text nor bytes; the reason of
 * `signal`.
 */
export async function begun(
  stream: ReadableStream<unknown>,
  signal: AbortSignal | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const reader = stream.getReader();
  const next = async () => {
    const { done, value } = await reader.read();
    if (done) return undefined;
    try {
      return chunkOf(value);
    } catch (error) {
      reader.cancel(error).catch(() => undefined);
      throw error;
    }
  };
  let first = await whileWanted(reader, signal, next);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = first ?? (await next());
      first = undefined;
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * Calls `read`, and cancels the reader as soon as the signal aborts.
 * @throws the reason of `signal`.
 */
export async function whileWanted<Result>(
  reader: ReadableStreamDefaultReader<unknown>,
  signal: AbortSignal | undefined,
  read: () => Promise<Result>,
): Promise<Result> {
  if (signal === undefined) return read();
  const stop = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (signal.aborted) stop();
    const result = await read();
    signal.throwIfAborted();
    return result;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Converts a chunk to bytes. A handler's stream may yield any value. */
export function chunkOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return Buffer.from(chunk);
  throw new TypeError(
    `reply: the stream has a chunk of type ${typeof chunk}; give it text or Uint8Array`,
  );
}
