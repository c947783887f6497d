import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { bytesRead, type Connection } from "./connections.ts";
import { lingerNow } from "./lingering-close.ts";

/** How much of a body that nobody wants is read so that its connection goes on. */
const mostBytes = 65_536;
/** Nothing came for so long: the client does not send any more. */
const silentMs = 5_000;
/** The most that it may take. */
const mostMs = 30_000;

/**
 * Whether the rest of a body is worth reading: it is small, as far as its client has said, or small so far.
 *
 * @param received - how much of it has come
 */
export function isSmallBody({ headers }: IncomingMessage, received: number): boolean {
  const { "content-length": length } = headers;
  return length === undefined ? received <= mostBytes : Number(length) <= mostBytes;
}

/**
 * Reads the rest of a body that was answered early, so that its connection can serve what comes after it. A client that
 * sends too much is told the end, and one that sends nothing is cut off.
 *
 * @param requestTimeoutMs - how long a request may take to arrive; where that is less, it holds for the rest of this one too
 */
export function readRest(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
): void {
  let received = 0;
  connection.isDiscarding = true;
  const cut = () => void socket.destroy();
  const silence = setTimeout(cut, Math.min(silentMs, requestTimeoutMs)).unref();
  const end = setTimeout(cut, Math.min(mostMs, requestTimeoutMs)).unref();
  const stop = () => {
    clearTimeout(silence);
    clearTimeout(end);
    message.off("data", receive).off("end", arrived);
    socket.off("close", stop);
    connection.isDiscarding = false;
  };
  const arrived = () => {
    stop();
    connection.idleAtBytes = bytesRead(socket);
  };
  const receive = (chunk: Buffer) => {
    silence.refresh();
    received += chunk.byteLength;
    if (received <= mostBytes) return;
    stop();
    connection.isClosing = true;
    lingerNow(socket, connection, message, requestTimeoutMs);
  };
  message.on("data", receive).on("end", arrived);
  socket.on("close", stop);
}
