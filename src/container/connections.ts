import type { Server as HttpServer } from "node:http";
import type { Duplex } from "node:stream";

/** A request that is being answered. */
export interface OpenRequest {
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/** What is known of one connection. */
export interface Connection {
  /** How many of its requests are being answered. */
  answering: number;
  /** Those that are being answered. */
  readonly requests: Set<OpenRequest>;
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
  /** Aborts the signals of all requests that are being answered. */
  abort(reason: unknown): void;
  /** Names the requests that are being answered, as far as a line has room for them. */
  underWay(): string[];
  /** Cuts all connections, upgraded ones too. */
  cut(): void;
}

/** How many requests are named. */
const mostNamed = 20;

/** Follows the connections of `http` from now on. */
export function followConnections(http: HttpServer): Connections {
  const known = new Map<Duplex, Connection>();
  const of = (socket: Duplex): Connection => {
    let connection = known.get(socket);
    if (connection === undefined) {
      connection = { answering: 0, requests: new Set(), isUsed: false, isBroken: false, failBody: undefined };
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
    abort: (reason) => {
      for (const { requests } of known.values()) for (const request of requests) request.abort(reason);
    },
    underWay: () => {
      const requests = [...known.values()].flatMap((connection) => [...connection.requests]);
      return requests.slice(0, mostNamed).map(({ method, path }) => `${method} ${path.slice(0, 200)}`);
    },
    cut: () => {
      http.closeAllConnections();
      for (const socket of known.keys()) socket.destroy();
    },
  };
}
