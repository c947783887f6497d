import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { bytesRead, type Connection } from "./connections.ts";

/** Time without data after which none is in flight, and a client is silent, in milliseconds. */
const [quietMs, silentMs] = [500, 5_000];
/** Limits for discarding data: its duration in milliseconds, and its size in bytes. */
const [mostMs, mostBytes] = [30_000, 67_108_864];
/** Time limit while the process drains, in milliseconds. */
const hurriedMs = 250;
const lookMs = 50;

/**
 * Closes a connection in stages once its last response is out (RFC 9112, 9.6), and discards the data
 * that the client still sends: a socket that closes with unread bytes is reset, and a client that reads
 * only after it has sent everything would never see its response.
 *
 * ```text
 * response out    request read, or quiet for 0.5 s    client ends, 5 s silent, 30 s or 64 MiB
 * |-- read on ----| FIN, read on ---------------------| closed
 * ```
 *
 * @param requestTimeoutMs - limits the discarding, if lower than 30 s.
 */
export function lingerAfterAnswer(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
  draining: AbortSignal,
): void {
  // Node calls this method when the last response is out.
  socket.destroySoon = () => {
    lingerNow(socket, connection, message, requestTimeoutMs);
    if (draining.aborted) connection.hurry?.();
  };
}

function lingerNow(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
): void {
  connection.hurry ??= linger(socket, message, Math.min(mostMs, requestTimeoutMs));
}

function linger(socket: Socket, message: IncomingMessage, longestMs: number): () => void {
  const firstBytes = bytesRead(socket);
  let lastBytes = firstBytes;
  let lastMs = performance.now();
  let endMs = lastMs + longestMs;
  let isHurried = false;
  const look = () => {
    const nowMs = performance.now();
    const bytes = bytesRead(socket);
    if (bytes > lastBytes) lastMs = nowMs;
    lastBytes = bytes;
    const silence = nowMs - lastMs;
    if ((isHurried || message.complete || silence >= quietMs) && socket.writable) socket.end();
    const isOver =
      silence >= (message.complete ? quietMs : silentMs) ||
      nowMs >= endMs ||
      bytes - firstBytes > mostBytes;
    if (isOver) socket.destroy();
  };
  const timer = setInterval(look, lookMs);
  socket.once("close", () => clearInterval(timer));
  message.resume();
  message.once("end", look);
  look();
  return () => {
    isHurried = true;
    endMs = Math.min(endMs, performance.now() + hurriedMs);
    look();
  };
}

/** Largest unwanted body that is read to keep its connection open, in bytes. */
const smallBytes = 65_536;

export function isSmallBody({ headers }: IncomingMessage, received: number): boolean {
  return Number(headers["content-length"] ?? received) <= smallBytes;
}

/**
 * Discards the rest of a body whose request was answered early, so that the connection can serve
 * the next. If too much arrives, closes in stages. Cuts a silent client.
 *
 * @param requestTimeoutMs - limits the rest of the body, if lower than 30 s.
 * @param isForwarded - whether the sender reads the response only after the whole body: then only
 * `requestTimeoutMs` limits it.
 */
export function readRest(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
  isForwarded: boolean,
): void {
  let received = 0;
  connection.isDiscarding = true;
  const cut = () => void socket.destroy();
  const limit = (ms: number) => (isForwarded ? requestTimeoutMs : Math.min(ms, requestTimeoutMs));
  const silence = setTimeout(cut, limit(silentMs)).unref();
  const end = setTimeout(cut, limit(mostMs)).unref();
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
    if (received <= smallBytes || isForwarded) return;
    stop();
    connection.isClosing = true;
    lingerNow(socket, connection, message, requestTimeoutMs);
  };
  message.on("data", receive).on("end", arrived);
  socket.on("close", stop);
}
