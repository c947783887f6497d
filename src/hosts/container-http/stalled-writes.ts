import type { Server } from "node:http";
import type { Logger } from "../../base/log/logger.ts";
import type { Connection, Connections, OpenRequest } from "./connections.ts";
import { takenByKernel } from "./unread-bytes.ts";

/** Bytes that a client had taken at its last sufficient progress, and the time of this progress. */
interface Mark {
  readonly taken: number;
  readonly sinceMs: number;
}

/** Longest time between two checks, in milliseconds. */
const mostLookMs = 5_000;

/**
 * Minimum rate at which a client must read, in bytes per second. Otherwise, a client that takes one
 * byte from time to time would keep its response in memory forever.
 */
const leastBytesASecond = 1_024;

/**
 * Cuts the connections whose client has taken almost nothing of the written data for `timeoutMs`,
 * or up to a quarter longer. Resets HTTP/2 streams by the same rule. One check of all connections
 * every few seconds replaces a timer for each.
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
      if (session === undefined) continue; // HTTP/1.1 writes its responses one after the other
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
