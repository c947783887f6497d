import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { InFlightLimit } from "./in-flight-limit.ts";
import { SmallSet } from "./small-set.ts";
import type { Unread } from "./unread-bytes.ts";

/** Request that is being answered or waits for its turn. */
export interface OpenRequest {
  /** Set once the request is served. */
  requestId: string;
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Cleans up when the connection closes before the response is complete. */
  leave?(): void;
  /** Logger of the request, set once its response is ready. */
  readonly log?: Logger | undefined;
  /** Progress of the response, if its connection writes several at the same time. */
  outflow?: Outflow;
  /** Whether the request was ended, and logged, because its client does not read the response. */
  isStalled?: boolean;
  /** Releases a response that waits for earlier ones. Called when the connection is cut. */
  drop?: (() => void) | undefined;
}

/** Response that is being written. */
export interface Outflow {
  /** Returns the bytes taken so far, or `undefined` if no bytes wait. */
  taken(): number | undefined;
  reset(): void;
}

/** Connection that an upgrade handler has taken over. */
export interface Upgraded {
  readonly requestId: string;
  readonly path: string;
  /** Aborts when the process drains. */
  readonly draining: AbortController;
}

/** Connection whose last response is out. */
export interface Lingering {
  /** Ends the connection now and closes it soon, because the process drains. */
  hurry(): void;
}

export interface Connection {
  /** Requests in progress, in order of arrival. */
  readonly requests: SmallSet<OpenRequest>;
  /** Time of acceptance, by `performance.now()`. */
  readonly openedMs: number;
  /**
   * Bytes received when the last response was out. The connection is idle while this count is
   * unchanged.
   */
  idleAtBytes: number;
  /** Whether the parser failed. No further request follows. */
  isBroken: boolean;
  /** Whether the client was notified of the close. Later requests are ignored (RFC 9112, 9.6). */
  isClosing: boolean;
  /** Whether the rest of a body is being discarded because its request was answered early. */
  isDiscarding: boolean;
  failBody: ((error: unknown) => void) | undefined;
  /** Reason that the rest of a body will not arrive, for a handler that reads it later. */
  bodyFailure: PipelineError | undefined;
  upgraded: Upgraded | undefined;
  /** Set for HTTP/2. */
  session: Session | undefined;
  /** Bytes held for the client that it has not read. */
  readonly unread: Unread;
  /** Set once the connection has had a request. */
  inFlight: InFlightLimit | undefined;
  /** Set once the connection lingers before it closes. */
  lingering: Lingering | undefined;
  /** Network socket, below the TLS socket. */
  transport: Duplex;
  /** Creates the reason with which requests abort once their client has gone. */
  readonly departure: () => DOMException;
}

export interface Session {
  /**
   * Sends the client elsewhere, and still serves requests that it sent before it learned of this.
   */
  retire(): void;
  /** Refuses further requests, and closes once all are answered. */
  close(): void;
  destroy(): void;
}

/** Requests in flight. `requests` and `requestIds` have the same order and the same limit. */
export interface UnderWay {
  readonly requests: readonly string[];
  readonly requestIds: readonly string[];
  readonly count: number;
  readonly upgraded: number;
}

export interface Connections {
  of(socket: Duplex): Connection;
  /** Open connections by socket. */
  readonly known: ReadonlyMap<Duplex, Connection>;
  /**
   * Closes idle connections. New connections and those with a partial request get a short grace
   * period.
   */
  closeIdle(): void;
  /** Aborts the signals of all requests in progress and fails the bodies that have not arrived. */
  abort(reason: unknown): void;
  /**
   * Returns the requests in progress and the upgraded connections, named up to the limit of a log
   * line.
   */
  underWay(): UnderWay;
  /** Cuts all connections, including upgraded ones. */
  cut(): void;
}

/** Maximum number of requests, events and jobs that a log line names. */
export const mostNamed = 20;

/**
 * Time for which a connection is new, in milliseconds. Its first request may be on its way and
 * would be lost.
 */
const newMs = 500;

/** Time for the rest of an incomplete request head after the listener closes, in milliseconds. */
const restOfHeadMs = 500;

/** Tracks the connections of `http`. Notifies upgraded ones when `draining` aborts. */
export function followConnections(
  http: HttpServer,
  isTls: boolean,
  draining: AbortSignal,
): Connections {
  const known = new Map<Duplex, Connection>();
  let closingSinceMs: number | undefined;
  const of = (socket: Duplex): Connection => {
    let connection = known.get(socket);
    if (connection === undefined) {
      connection = {
        requests: new SmallSet(),
        openedMs: performance.now(),
        idleAtBytes: 0,
        isBroken: false,
        isClosing: false,
        isDiscarding: false,
        failBody: undefined,
        bodyFailure: undefined,
        upgraded: undefined,
        session: undefined,
        unread: { bytes: 0, movedMs: 0, taken: 0, isCut: false },
        inFlight: undefined,
        lingering: undefined,
        transport: socket,
        departure: lazyDeparture(),
      };
      known.set(socket, connection);
    }
    return connection;
  };
  const follow = (socket: Duplex) => {
    const connection = of(socket);
    socket.once("close", () => {
      known.delete(socket);
      for (const request of connection.requests) request.leave?.();
    });
    return connection;
  };
  const shaking = new Map<string, Socket>();
  if (isTls) {
    // With TLS, the handshake creates another socket for the connection. The network socket closes
    // with it.
    http.on("connection", (socket) => {
      const address = addressOf(socket);
      shaking.set(address, socket);
      socket.once("close", () => shaking.delete(address));
    });
    http.on("secureConnection", (socket: Socket) => {
      const address = addressOf(socket);
      /* v8 ignore next -- a connection that broke in that moment has lost its address */
      follow(socket).transport = shaking.get(address) ?? socket;
      shaking.delete(address);
    });
  } else http.on("connection", follow);
  const closeIdle = () => {
    const nowMs = performance.now();
    closingSinceMs ??= nowMs;
    const isOver = nowMs - closingSinceMs >= restOfHeadMs;
    for (const [socket, connection] of known) {
      const { requests, openedMs, idleAtBytes, isClosing, upgraded, session } = connection;
      const isNew = idleAtBytes === 0 && nowMs - openedMs < newMs;
      if (session !== undefined) {
        if (requests.size > 0 || !isNew) session.close();
        continue;
      }
      if (requests.size > 0 || isClosing || upgraded !== undefined) continue;
      if (!isIdle(connection, socket)) {
        // A closed server no longer checks for late requests and would wait for them without a
        // limit.
        if (isOver)
          http.emit(
            "clientError",
            Object.assign(new Error("Shutting down"), { code: lateRequest }),
            socket,
          );
      } else if (!isNew) socket.destroy();
    }
    if (isOver) for (const socket of shaking.values()) socket.destroy();
  };
  // Replaces Node's method, which `http.close` calls. Node's treats an answered connection as idle
  // even if its next request has not been read yet.
  http.closeIdleConnections = closeIdle;
  draining.addEventListener("abort", () => {
    for (const { requests, upgraded, session, lingering } of known.values()) {
      upgraded?.draining.abort(draining.reason);
      lingering?.hurry();
      if (requests.size > 0) session?.retire();
    }
  });
  return {
    of,
    known,
    closeIdle,
    abort: (reason) => {
      for (const { requests, failBody } of known.values()) {
        for (const request of requests) request.abort(reason);
        failBody?.(reason);
      }
    },
    underWay: () => {
      const all = [...known.values()];
      const upgraded = all.flatMap((connection) => connection.upgraded ?? []);
      const requests = all.flatMap((connection) => [...connection.requests]);
      const shown = [
        ...requests.map(({ method, path, requestId }) => ({
          name: `${method} ${path.slice(0, 200)}`,
          requestId,
        })),
        ...upgraded.map(({ path, requestId }) => ({
          name: `GET ${path.slice(0, 200)} (upgraded)`,
          requestId,
        })),
      ];
      const named = shown.slice(0, mostNamed);
      return {
        requests: named.map(({ name }) => name),
        requestIds: named.map(({ requestId }) => requestId),
        count: shown.length,
        upgraded: upgraded.length,
      };
    },
    cut: () => {
      for (const [socket, { session }] of known) {
        session?.destroy();
        socket.destroy();
      }
      for (const socket of shaking.values()) socket.destroy();
    },
  };
}

/**
 * Creates one error for all requests of a connection: creating it takes longer than most steps of a
 * request.
 */
function lazyDeparture(): () => DOMException {
  let departure: DOMException | undefined;
  return () => {
    departure ??= new DOMException("The client has gone", "AbortError");
    return departure;
  };
}

function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Node's code for a request that takes too long to arrive. */
export const lateRequest = "ERR_HTTP_REQUEST_TIMEOUT";

/** Returns whether no bytes have arrived since the last response, or at all. */
export function isIdle({ idleAtBytes }: Connection, socket: Duplex): boolean {
  return bytesRead(socket) === idleAtBytes;
}

export function bytesRead(socket: Duplex): number {
  return (socket as Socket).bytesRead; // safe: a server's sockets are network sockets
}
