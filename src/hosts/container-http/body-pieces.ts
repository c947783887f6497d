import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** What was sent of a body. */
export interface SentBody {
  /** Of one that is sent in pieces. */
  bytes: number;
  /** Of one that is sent at once: it has left where the whole answer has. */
  atOnce: number;
}

/** How much that is. */
export function sentBytes({ bytes, atOnce }: SentBody, isWhole: boolean): number {
  return isWhole ? bytes + atOnce : bytes;
}

/** A stream of the web as one of Node's. */
export function streamOf(body: ReadableStream<Uint8Array>): Readable {
  // Safe: Node's own type of a web stream and the DOM's differ in declarations only.
  return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
}

/** Counts what of a stream waits for the client. */
export interface WaitingBytes {
  hold(bytes: number): void;
  release(bytes: number): void;
}

/** A stream holds a chunk that is being sent, and reads two on. */
const chunksHeld = 3;

/**
 * Sends a body in pieces, and counts each once the next is asked for: it was taken then. Of a body that is sent at once nobody can
 * say how much has left when its connection breaks.
 */
export async function sendPieces(
  body: Uint8Array | ReadableStream<Uint8Array>,
  to: Writable,
  pieceBytes: number,
  sent: SentBody,
  waiting?: WaitingBytes,
): Promise<void> {
  const source = body instanceof Uint8Array ? [body] : streamOf(body);
  // The pipeline would let go of it with its next chunk only, which may never come.
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
