/**
 * Returns the stream in bytes, after reading its first chunk, so that a stream that fails immediately
 * causes an error response instead of a truncated one.
 *
 * @throws the stream's error; TypeError for a chunk that is neither text nor bytes; the reason of
 * `signal`.
 */
export async function begun(
  stream: ReadableStream<unknown>,
  signal: AbortSignal | undefined,
): Promise<ReadableStream<Uint8Array>> {
  const reader = stream.getReader();
  const next = () => bytesIn(reader, reader.read(), chunkOf);
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

/** Returns a read chunk in bytes, `undefined` at the end. An error of `bytesOf` cancels the reader. */
export async function bytesIn<Chunk>(
  reader: ReadableStreamDefaultReader<Chunk>,
  reading: ReturnType<typeof reader.read>,
  bytesOf: (chunk: Chunk) => Uint8Array,
): Promise<Uint8Array | undefined> {
  const { done, value } = await reading;
  if (done) return undefined;
  try {
    return bytesOf(value);
  } catch (error) {
    reader.cancel(error).catch(() => undefined);
    throw error;
  }
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

function chunkOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === "string") return Buffer.from(chunk);
  throw new TypeError(
    `reply: the stream has a chunk of type ${typeof chunk}; give it text or Uint8Array`,
  );
}
