import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { errorLog } from "../../base/errors/describe.ts";
import { isTypedError, systemCode } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";

export interface SentBody {
  bytes: number;
  /** Bytes passed to one write. They count as sent only if the whole response was sent. */
  atOnce: number;
}

export interface WaitingBytes {
  hold(bytes: number): void;
  release(bytes: number): void;
}

/** Chunks that a stream holds: one in progress and two read ahead. */
const chunksHeld = 3;

/**
 * Sends a body in pieces, to know how many bytes were sent before a connection broke. A piece
 * counts as sent once `to` requests the next one.
 */
export async function sendPieces(
  body: Uint8Array | ReadableStream<Uint8Array>,
  to: Writable,
  pieceBytes: number,
  sent: SentBody,
  waiting?: WaitingBytes,
): Promise<void> {
  const source =
    body instanceof Uint8Array
      ? [body]
      : // Safe: Node's type of a web stream and the DOM's differ only in their declarations.
        Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  // `pipeline` would destroy the source only at its next chunk, which may never arrive.
  if (source instanceof Readable) to.once("close", () => source.destroy());
  await pipeline(
    source,
    async function* pieces(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
      for await (const chunk of chunks) {
        const held = chunk.byteLength * chunksHeld;
        waiting?.hold(held);
        for (let from = 0; from < chunk.byteLength; from += pieceBytes) {
          const piece = chunk.subarray(from, from + pieceBytes);
          yield piece;
          sent.bytes += piece.byteLength;
        }
        waiting?.release(held);
      }
    },
    to,
  );
}

/**
 * Logs a cut response: a warning if the client has disconnected, otherwise an error. A typed error as the reason
 * of `signal` means that the service ended the request.
 */
export function reportCut(log: Logger, error: unknown, signal: AbortSignal): void {
  const isPremature = systemCode(error) === "ERR_STREAM_PREMATURE_CLOSE";
  if (isPremature && !isTypedError(signal.reason)) log.warn("request.aborted");
  else log.error("response.cut_off", errorLog(error).data);
}
