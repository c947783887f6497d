import { createServer, type Server as HttpServer, type ServerOptions } from "node:http";
import type { Server } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../base/log/logger.ts";
import type { HttpSettings, TlsOptions } from "./http-options.ts";

export function createNodeServer(
  settings: HttpSettings,
  log: Logger,
  serveHttp2: (socket: TLSSocket) => void,
): HttpServer {
  const { tls, headersTimeoutMs: headersTimeout } = settings;
  const options = {
    keepAliveTimeout: settings.keepAliveTimeoutMs,
    headersTimeout,
    requestTimeout: settings.requestTimeoutMs,
    maxHeaderSize: settings.maxHeaderBytes,
    connectionsCheckingInterval: 1_000, // Node checks for slow requests only every 30 s by default
    requireHostHeader: false, // Node would answer on its own, without a request ID
    joinDuplicateHeaders: true, // Node would drop repeated headers, which a proxy may read
  } satisfies ServerOptions;
  const http =
    tls === undefined ? createServer(options) : createTlsServer(tls, options, log, serveHttp2);
  http.maxConnections = settings.maxConnections;
  reportRefused(http, log);
  return http;
}

/** Loads TLS on demand, because most containers run behind a load balancer that terminates it. */
function createTlsServer(
  tls: TlsOptions,
  options: ServerOptions & { readonly headersTimeout: number },
  log: Logger,
  serveHttp2: (socket: TLSSocket) => void,
): HttpServer {
  const https = process.getBuiltinModule("node:https");
  const server = https.createServer({
    ...options,
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: options.headersTimeout,
  });
  // Node's HTTP/1.1 listeners. `http2.createSecureServer` would also serve HTTP/1.1, but in some
  // versions of Node without an HTTP server's limits.
  const serveHttp1 = server.listeners("secureConnection");
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket) => {
    if (socket.alpnProtocol === "h2") serveHttp2(socket);
    else for (const listener of serveHttp1) listener.call(server, socket);
  });
  // Node's listener would report a failed handshake as an HTTP error, which no client can receive.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", ({ message }, socket) => {
    log.debug("tls.handshake_failed", { message });
    socket.destroy();
  });
  return server;
}

const reportMs = 10_000;

/** Reports the first of events that may flood immediately, then their number at intervals. */
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
