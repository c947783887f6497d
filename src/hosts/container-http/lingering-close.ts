import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { bytesRead, type Connection, type Lingering } from "./connections.ts";

/** Nothing came for so long: the client has sent what it had under way, and is told the end. */
const quietMs = 500;
/** Nothing came for so long: it does not send any more. */
const silentMs = 5_000;
/** The most that is read and thrown away. */
const mostMs = 30_000;
const mostBytes = 67_108_864;
/** The most while the process drains. */
const hurriedMs = 250;
const lookMs = 50;

/**
 * Closes a connection in stages once its last answer is out (RFC 9112, 9.6). What the client still sends is read and
 * thrown away: a socket that is closed with bytes unread is reset, and a client that reads only when it has sent
 * everything would never see its answer.
 *
 * ```text
 * answer out        all was sent, or quiet for 0.5 s      the client ends, is silent for 5 s, or 30 s or 64 MiB are over
 * |-- read on ------| FIN, read on -----------------------| closed
 * ```
 *
 * @param requestTimeoutMs - how long a request may take to arrive; where that is less, it holds for the rest of this one too
 */
export function lingerAfterAnswer(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
  draining: AbortSignal,
): void {
  // What Node calls when the last answer is out.
  socket.destroySoon = () => {
    lingerNow(socket, connection, message, requestTimeoutMs);
    if (draining.aborted) connection.lingering?.hurry();
  };
}

/** The same, of a connection whose last answer is out. */
export function lingerNow(
  socket: Socket,
  connection: Connection,
  message: IncomingMessage,
  requestTimeoutMs: number,
): void {
  connection.lingering ??= linger(socket, message, Math.min(mostMs, requestTimeoutMs));
}

function linger(socket: Socket, message: IncomingMessage, longestMs: number): Lingering {
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
  return {
    hurry: () => {
      isHurried = true;
      endMs = Math.min(endMs, performance.now() + hurriedMs);
      look();
    },
  };
}
