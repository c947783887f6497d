import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "../log/logger.ts";
import type { Connection, Connections, OpenRequest } from "./connections.ts";

/** How far something that writes was, when it was seen to move last. */
interface Mark {
  readonly taken: number;
  readonly sinceMs: number;
}

/** How often all are looked at, at the least. */
const mostLookMs = 5_000;

/**
 * Cuts the connections whose client has taken nothing of what is written for `timeoutMs`, or up to a quarter longer, and
 * resets the streams of HTTP/2 of which it has not. One look at all there are every few seconds, instead of a timer for
 * each: an answer that is read costs nothing.
 */
export function cutStalled(http: Server, { known }: Connections, timeoutMs: number, log: Logger): void {
  let marks = new Map<Connection | OpenRequest, Mark>();
  const look = () => {
    const nowMs = performance.now();
    const seen = new Map<Connection | OpenRequest, Mark>();
    const isStalled = (writer: Connection | OpenRequest, taken: number | undefined): boolean => {
      if (taken === undefined) return false;
      const mark = marks.get(writer);
      const isMoving = mark === undefined || taken > mark.taken;
      if (!isMoving && nowMs - mark.sinceMs >= timeoutMs) return true;
      seen.set(writer, isMoving ? { taken, sinceMs: nowMs } : mark);
      return false;
    };
    for (const [socket, connection] of known) {
      const { requests, upgraded, session, transport } = connection;
      if (upgraded !== undefined) continue;
      if (isStalled(connection, takenByKernel(transport))) {
        report(log, [...requests].find(isAnswered), timeoutMs);
        for (const request of requests) request.isStalled = true;
        session?.destroy();
        socket.destroy();
        continue;
      }
      if (session === undefined) continue; // its answers are written one after the other
      for (const request of requests) {
        if (!isStalled(request, request.outflow?.taken())) continue;
        report(log, request, timeoutMs);
        request.isStalled = true;
        request.outflow?.reset();
      }
    }
    marks = seen;
  };
  const timer = setInterval(look, Math.min(mostLookMs, timeoutMs / 4)).unref();
  http.once("close", () => clearInterval(timer));
}

function isAnswered({ log }: OpenRequest): boolean {
  return log !== undefined;
}

function report(log: Logger, request: OpenRequest | undefined, timeoutMs: number): void {
  (request?.log ?? log).warn("response.stalled", { method: request?.method, path: request?.path.slice(0, 200), timeoutMs });
}

/**
 * How many bytes of a connection the kernel has taken, which takes them as the client does; `undefined` where none wait.
 * Node's own timeout of sockets goes by the same number, but what comes counts as progress for it too.
 */
function takenByKernel(socket: Duplex): number | undefined {
  // Safe: a socket of the network has a handle until it is destroyed, and where it had none, nothing would be cut.
  const { _handle: handle } = socket as { _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null };
  return handle && handle.writeQueueSize > 0 ? handle.bytesWritten - handle.writeQueueSize : undefined;
}
