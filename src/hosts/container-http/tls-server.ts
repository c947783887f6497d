import type { Server as HttpServer, ServerOptions } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../base/log/logger.ts";
import type { TlsOptions } from "./http-options.ts";

/**
 * Makes a server of HTTPS: `serveHttp2` gets the connections that speak HTTP/2, Node's own HTTP/1.1 the others. TLS is
 * loaded here, and not with the module: most containers have a balancer before them that ends it.
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
  // What Node itself does with a connection is for those that speak HTTP/1.1. `http2.createSecureServer` serves them as
  // well, but without the limits of an HTTP server in every version of Node that there is.
  const serveHttp1 = server.listeners("secureConnection");
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket) => {
    if (socket.alpnProtocol === "h2") serveHttp2(socket);
    else for (const listener of serveHttp1) listener.call(server, socket);
  });
  // Nobody is there yet to be answered; Node would hand it on as an error of HTTP.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", ({ message }, socket) => {
    log.debug("tls.handshake_failed", { message });
    socket.destroy();
  });
  return server;
}
