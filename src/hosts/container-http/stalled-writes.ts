import type { Server } from "node:http";
import type { Logger } from "../../base/log/logger.ts";
import type { Connection, Connections, OpenRequest } from "./connections.ts";
import { takenByKernel } from "./unread-bytes.ts";

/** How far something that writes was, when it had last moved far enough. */
interface Mark {
  readonly taken: number;
  readonly sinceMs: number;
}

/** How often all are looked at, at the least. */
const mostLookMs = 5_000;

/** How much a client has to take a second: one that takes a byte now and then would keep what it is sent for ever. */
const leastBytesASecond = 1_024;

/**
 * Cuts the connections whose client has taken next to nothing of what is written for `timeoutMs`, or up to a quarter
 * longer, and resets the streams of HTTP/2 of which it has not. One look at all there are every few seconds, instead of a
 * timer for each: an answer that is read costs nothing.
 */
export function cutStalled(
  http: Server,
  { known }: Connections,
  timeoutMs: number,
  log: Logger,
): void {
  const leastBytes = Math.ceil((timeoutMs / 1_000) * leastBytesASecond);
  let marks = new Map<Connection | OpenRequest, Mark>();
  const look = () => {
    const nowMs = performance.now();
    const seen = new Map<Connection | OpenRequest, Mark>();
    const isStalled = (writer: Connection | OpenRequest, taken: number | undefined): boolean => {
      if (taken === undefined) return false;
      const mark = marks.get(writer);
      const isMoving = mark === undefined || taken >= mark.taken + leastBytes;
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
  (request?.log ?? log).warn("response.stalled", {
    method: request?.method,
    path: request?.path.slice(0, 200),
    timeoutMs,
  });
}
