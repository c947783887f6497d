import type { Server as HttpServer, ServerOptions } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../base/log/logger.ts";
import type { TlsOptions } from "./http-options.ts";

/**
 * Creates an HTTPS server: `serveHttp2` receives the connections that use HTTP/2, and Node's own
 * HTTP/1.1 server the others. Loads TLS on demand, because most containers run behind a load
 * balancer that terminates it.
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
  // HTTP/1.1 connections go to Node's own listeners. `http2.createSecureServer` also serves
  // HTTP/1.1, but not every version of Node applies the limits of an HTTP server there.
  const serveHttp1 = server.listeners("secureConnection");
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket) => {
    if (socket.alpnProtocol === "h2") serveHttp2(socket);
    else for (const listener of serveHttp1) listener.call(server, socket);
  });
  // Node's own listener would report a failed handshake as an HTTP error, but no client can be
  // answered.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", ({ message }, socket) => {
    log.debug("tls.handshake_failed", { message });
    socket.destroy();
  });
  return server;
}
