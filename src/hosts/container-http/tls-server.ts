import type { Server as HttpServer, ServerOptions } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../base/log/logger.ts";
import type { TlsOptions } from "./http-options.ts";

/**
 * Creates an HTTPS server. HTTP/2 connections go to `serveHttp2`, all others to Node's HTTP/1.1
 * server. Loads TLS on demand, because most containers run behind a load balancer that terminates
 * it.
 */
export function createTlsServer(
  tls: TlsOptions,
  options: ServerOptions & { readonly headersTimeout: number },
  log: Logger,
  serveHttp2: (socket: TLSSocket) => void,
): HttpServer {
  const { createServer } = process.getBuiltinModule("node:https");
  const server = createServer({
    ...options,
    ...tls,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: options.headersTimeout,
  });
  // Node's HTTP/1.1 listeners. `http2.createSecureServer` would also serve HTTP/1.1, but without
  // the limits of an HTTP server in some versions of Node.
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
