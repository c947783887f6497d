import type { Server } from "node:net";
import type { Logger } from "../log/logger.ts";

/** How often refused connections are reported at most, in milliseconds. */
const reportMs = 10_000;

/** Logs connections that are refused because there are too many: the first at once, then their number, now and then. */
export function reportRefused(server: Server, log: Logger): void {
  let refused = 0;
  let timer: NodeJS.Timeout | undefined;
  const report = () => {
    timer = undefined;
    if (refused === 0) return;
    log.warn("server.connections_refused", { count: refused, maxConnections: server.maxConnections });
    refused = 0;
    timer = setTimeout(report, reportMs).unref();
  };
  server.on("drop", () => {
    refused += 1;
    if (timer === undefined) report();
  });
}
