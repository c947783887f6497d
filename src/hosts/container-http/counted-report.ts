import type { Server } from "node:net";
import type { Logger } from "../../base/log/logger.ts";

/** Minimum time between two reports, in milliseconds. */
const reportMs = 10_000;

/**
 * Limits reports of events that may flood: reports the first event immediately, then the number of
 * new events at intervals.
 */
export function countedReport(report: (count: number) => void): (count: number) => void {
  let counted = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    timer = undefined;
    if (counted === 0) return;
    report(counted);
    counted = 0;
    timer = setTimeout(flush, reportMs).unref();
  };
  return (count) => {
    counted += count;
    if (timer === undefined) flush();
  };
}

export function reportRefused(server: Server, log: Logger): void {
  const refused = countedReport((count) =>
    log.warn("server.connections_refused", { count, maxConnections: server.maxConnections }),
  );
  server.on("drop", () => refused(1));
}
