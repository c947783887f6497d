import type { Server } from "node:net";
import type { Logger } from "../../base/log/logger.ts";
import { countedReport } from "./counted-report.ts";

/** Logs connections that are refused because too many are open. */
export function reportRefused(server: Server, log: Logger): void {
  const refused = countedReport((count) =>
    log.warn("server.connections_refused", { count, maxConnections: server.maxConnections }),
  );
  server.on("drop", () => refused(1));
}
