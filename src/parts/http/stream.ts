import type { Readable } from "node:stream";
import { guard, isNodeStream } from "./node-stream.ts";

/** A streamed body: a web stream, a Node stream, or another async iterable of text and bytes. */
export type Streamed = ReadableStream<unknown> | Readable | AsyncIterable<unknown>;

/** Looks only at what may be one: the first look at the class loads all of Node's web streams, 1.4 ms of a cold start. */
export function isWebStream(body: unknown): body is ReadableStream<Uint8Array> {
  return (
    typeof body === "object" &&
    body !== null &&
    "getReader" in body &&
    body instanceof ReadableStream
  );
}

/** Whether a body is streamed. Writable Node streams count too: as JSON they would expose their internals. */
export function isStreamed(body: unknown): body is Streamed {
  if (typeof body !== "object" || body === null) return false;
  return Symbol.asyncIterator in body || isNodeStream(body) || isWebStream(body);
}

/**
 * Converts a streamed body to a web stream. It pulls the first chunk with the first read.
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
      // Does not await `return`: a generator that is waiting itself would hold up the cancellation.
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
    // The response is over: no caller is left for this error.
  }
}

/** Cancels a stream that will not be read, so that its source is released. */
export function discard(body: unknown): undefined {
  // The answer does not depend on this; cancelling fails if the stream is locked or its source broken.
  if (isStreamed(body)) cancelled(body).catch(() => undefined);
}

async function cancelled(body: Streamed): Promise<void> {
  await webStreamOf(body).cancel();
}

/**
 * Reads the first chunk of a stream before its response begins, and turns text into bytes. A stream that fails earlier is an
 * ordinary error instead of a torn response.
 *
 * @throws the stream's error; TypeError for a chunk that is neither text nor bytes; the reason of `signal`.
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

/** Cancels the reader as soon as the signal aborts. @throws the reason of `signal`. */
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

/** The bytes of a chunk. A handler's stream may yield any value. */
export function chunkOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return Buffer.from(chunk);
  throw new TypeError(
    `reply: the stream has a chunk of type ${typeof chunk}; give it text or Uint8Array`,
  );
}
