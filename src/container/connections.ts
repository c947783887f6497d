import type { Server as HttpServer } from "node:http";
import type { Duplex } from "node:stream";

/** What is known of one connection. */
export interface Connection {
  /** How many of its requests are being answered. */
  answering: number;
  /** Whether a request ever came. */
  isUsed: boolean;
  /** The parser gave up on it: no further request will come. */
  isBroken: boolean;
  /** Fails the body that is being read, where one is. */
  failBody: ((error: Error) => void) | undefined;
}

/** Follows the connections of a server. */
export interface Connections {
  of(socket: Duplex): Connection;
  /** Closes what waits for nothing: idle connections, and those that never sent a request. */
  closeIdle(): void;
}

/** Follows the connections of `http` from now on. */
export function followConnections(http: HttpServer): Connections {
  const known = new Map<Duplex, Connection>();
  const of = (socket: Duplex): Connection => {
    let connection = known.get(socket);
    if (connection === undefined) {
      connection = { answering: 0, isUsed: false, isBroken: false, failBody: undefined };
      known.set(socket, connection);
    }
    return connection;
  };
  http.on("connection", (socket) => {
    of(socket);
    socket.once("close", () => known.delete(socket));
  });
  return {
    of,
    closeIdle: () => {
      http.closeIdleConnections();
      for (const [socket, { isUsed }] of known) if (!isUsed) socket.destroy();
    },
  };
}
