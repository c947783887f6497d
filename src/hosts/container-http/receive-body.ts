import { finished, type Readable } from "node:stream";
import { FrameworkError, isTypedError } from "../../base/errors/errors.ts";
import { bodyTooLarge } from "../../parts/http/input.ts";
import type { Connection } from "./connections.ts";

export const noBytes = new Uint8Array(0);

/**
 * Reads a whole body. If it rejects, the stream stays open and keeps flowing, because its socket
 * still carries the response.
 *
 * @throws FrameworkError `payload_too_large` above `limitBytes`, `overloaded` if the server already
 * holds too many bytes, `malformed_request` if the body ends early.
 */
export function receiveBody(
  body: Readable,
  limitBytes: number,
  holder: Pick<Connection, "failBody">,
  held: HeldBytes,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const pieces = createPieces();
    let received = 0;
    const stop = () => {
      // By now, `failBody` may belong to the next request.
      if (holder.failBody === fail) holder.failBody = undefined;
      body.off("data", receive);
      unfollow();
    };
    const fail = (error: unknown) => {
      stop();
      held.release();
      reject(
        isTypedError(error)
          ? error
          : new FrameworkError("malformed_request", "The body ended early", { cause: error }),
      );
    };
    const receive = (chunk: Buffer) => {
      received += chunk.byteLength;
      if (received > limitBytes) fail(bodyTooLarge(limitBytes));
      else if (!held.take(chunk.byteLength)) fail(overloaded());
      else pieces.add(chunk);
    };
    const unfollow = finished(body, { writable: false }, (error) => {
      if (error) return fail(error);
      stop();
      resolve(pieces.joined());
    });
    holder.failBody = fail;
    body.on("data", receive);
  });
}

function overloaded(): FrameworkError {
  const message = "The server holds as many bytes of requests as it may; try again";
  return new FrameworkError("overloaded", message, { headers: { "retry-after": "1" } });
}

/**
 * Size below which pieces are copied into a shared page, because a separate buffer takes a few
 * hundred bytes more than its content, and largest page, in bytes.
 */
const [smallBytes, maxPageBytes] = [1_024, 16_384];

/** Collects pieces of any size in at most about twice the memory of their bytes. */
function createPieces() {
  const whole: Uint8Array[] = [];
  let page = Buffer.alloc(0);
  let used = 0;
  let pagesBytes = 0;
  const endPage = () => {
    if (used > 0) whole.push(page.subarray(0, used));
    page = page.subarray(used);
    used = 0;
  };
  return {
    add: (piece: Buffer) => {
      if (piece.byteLength >= smallBytes || whole.length === 0) {
        endPage();
        whole.push(piece);
        return;
      }
      if (used + piece.byteLength > page.byteLength) {
        endPage();
        page = Buffer.allocUnsafeSlow(Math.min(maxPageBytes, Math.max(smallBytes, pagesBytes)));
        pagesBytes += page.byteLength;
      }
      used += piece.copy(page, used);
    },
    joined: () => {
      endPage();
      return whole.length === 1 && whole[0] !== undefined ? whole[0] : Buffer.concat(whole);
    },
  };
}

export interface HeldBytes {
  readonly mostBytes: number;
  /** Takes bytes if the limit allows, and returns whether it does. */
  take(bytes: number): boolean;
  release(): void;
}

export type ByteBudget = ReturnType<typeof createByteBudget>;

/** Limits the bytes that a server holds for all its requests. */
export function createByteBudget(limitBytes: number) {
  let heldBytes = 0;
  return {
    get heldBytes() {
      return heldBytes;
    },
    hold: (): HeldBytes => {
      let held = 0;
      let mostBytes = 0;
      return {
        get mostBytes() {
          return mostBytes;
        },
        take: (bytes) => {
          if (heldBytes + bytes > limitBytes) return false;
          heldBytes += bytes;
          held += bytes;
          mostBytes = held;
          return true;
        },
        release: () => {
          heldBytes -= held;
          held = 0;
        },
      };
    },
  };
}
