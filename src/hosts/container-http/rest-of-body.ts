import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { bytesRead, type Connection } from "./connections.ts";
import { lingerNow } from "./lingering-close.ts";

/** Largest unwanted body that is read to keep its connection open, in bytes. */
const mostBytes = 65_536;
/** Time without data after which the client has stopped sending, in milliseconds. */
const silentMs = 5_000;
/** Time limit for the rest of the body, in milliseconds. */
const mostMs = 30_000;

/**
 * Returns whether the rest of a body is worth reading: its declared length is small or, without
 * one, the received part is.
 *
 * @param received - bytes received so far.
 */
export function isSmallBody({ headers }: IncomingMessage, received: number): boolean {
  const { "content-length": length } = headers;
  return length === undefined ? received <= mostBytes : Number(length) <= mostBytes;
}

/**
 * Reads the rest of a body that was answered early, so that its connection can serve the next
 * request. If the client sends too much, the connection closes in stages. A silent client is cut
 * off.
 *
 * @param requestTimeoutMs - time limit for a request to arrive; if lower than 30 s, it also limits
 * the rest of this request.
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
