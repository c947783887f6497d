import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { bytesRead, type Connection } from "./connections.ts";
import { lingerNow } from "./lingering-close.ts";

/** Largest unwanted body that is read to keep its connection open, in bytes. */
const mostBytes = 65_536;
/** Time without data after which a client is considered silent, in milliseconds. */
const silentMs = 5_000;
/** Time limit for the rest of the body, in milliseconds. */
const mostMs = 30_000;

/**
 * Returns whether a body is small, by its declared length or, without one, by the received bytes.
 */
export function isSmallBody({ headers }: IncomingMessage, received: number): boolean {
  const { "content-length": length } = headers;
  return length === undefined ? received <= mostBytes : Number(length) <= mostBytes;
}

/**
 * Discards the rest of a body whose request was answered early, so that the connection can serve
 * the next request. If too much arrives, the connection closes in stages. A silent client is cut
 * off.
 *
 * @param requestTimeoutMs - limits the rest of the body, if lower than 30 s.
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
