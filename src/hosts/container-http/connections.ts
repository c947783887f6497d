import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { InFlightLimit } from "./in-flight-limit.ts";
import { SmallSet } from "./small-set.ts";
import type { Unread } from "./unread-bytes.ts";

/** A request that is being answered, or waits for room. */
export interface OpenRequest {
  /** Known as soon as it is served. */
  requestId: string;
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** What is done about it where its connection closes first. */
  leave?(): void;
  /** The request's own, once its answer is there. */
  readonly log?: Logger | undefined;
  /** Its answer, where its connection writes several side by side. */
  outflow?: Outflow;
  /** Its client does not read the answer: it is ended for that, with a log line. */
  isStalled?: boolean;
  /** Lets go of its answer, where that waits for others: its connection is cut. */
  drop?: (() => void) | undefined;
}

/** An answer that is being written. */
export interface Outflow {
  /** How many bytes of it were taken so far; `undefined` where none wait to be. */
  taken(): number | undefined;
  /** Resets its stream. */
  reset(): void;
}

/** A connection that was taken over. */
export interface Upgraded {
  readonly requestId: string;
  readonly path: string;
  /** Tells it that the process drains. */
  readonly draining: AbortController;
}

/** A connection whose last answer is out. */
export interface Lingering {
  /** The process drains: it is told the end now, and closed in a moment. */
  hurry(): void;
}

/** What is known of one connection. */
export interface Connection {
  /** Those that are being answered, in the order they came. */
  readonly requests: SmallSet<OpenRequest>;
  /** When it was accepted, by `performance.now()`. */
  readonly openedMs: number;
  /** How many bytes had come when the last answer was out: as long as there are no more, it is idle. */
  idleAtBytes: number;
  /** The parser gave up on it: no further request will come. */
  isBroken: boolean;
  /** The client was told that it closes: what comes then is not looked at any more (RFC 9112, 9.6). */
  isClosing: boolean;
  /** The rest of a body is being read away whose request was answered early. */
  isDiscarding: boolean;
  /** Fails the body that is being read, where one is. */
  failBody: ((error: unknown) => void) | undefined;
  /** Why the rest of a body will not come that nobody has asked for yet. */
  bodyFailure: PipelineError | undefined;
  upgraded: Upgraded | undefined;
  /** There where it speaks HTTP/2. */
  session: Session | undefined;
  /** What it holds that its client has not read. */
  readonly unread: Unread;
  /** There once it has had a request. */
  inFlight: InFlightLimit | undefined;
  /** What is left of it once it was told to close. */
  lingering: Lingering | undefined;
  /** The network's socket, below that of TLS. */
  transport: Duplex;
  /** Why its requests are aborted once their client has gone. */
  readonly departure: () => DOMException;
}

/** An HTTP/2 session. */
export interface Session {
  /** Tells the client to go elsewhere, and goes on with what it has sent before it knew. */
  retire(): void;
  /** Takes no further request, and closes once all are answered. */
  close(): void;
  destroy(): void;
}

/** What is under way; `requests` and `requestIds` have the same order, and the same bound. */
export interface UnderWay {
  readonly requests: readonly string[];
  readonly requestIds: readonly string[];
  readonly count: number;
  readonly upgraded: number;
}

/** Follows the connections of a server. */
export interface Connections {
  of(socket: Duplex): Connection;
  /** All that are open, by their sockets. */
  readonly known: ReadonlyMap<Duplex, Connection>;
  /** Closes what waits for nothing: idle connections, and in a moment those that are new or have half sent a request. */
  closeIdle(): void;
  /** Aborts the signals of all requests that are being answered, and fails the bodies that have not arrived. */
  abort(reason: unknown): void;
  /** What is being answered, and what was upgraded; named as far as a line has room. */
  underWay(): UnderWay;
  /** Cuts all connections, upgraded ones too. */
  cut(): void;
}

/** How many requests, events and jobs a line names. */
export const mostNamed = 20;

/** How long a connection is new: its first request is on its way, and would be lost. */
const newMs = 500;

/** How long the head of a request that has begun may still take once the listener is closed. */
const restOfHeadMs = 500;

/** Follows the connections of `http` from now on; upgraded ones are told when `draining` aborts. */
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
    // Over TLS a connection is another socket, once hands are shaken; the one below it closes with it.
    http.on("connection", (socket) => {
      const address = addressOf(socket);
      shaking.set(address, socket);
      socket.once("close", () => shaking.delete(address));
    });
    http.on("secureConnection", (socket: Socket) => {
      const address = addressOf(socket);
      /* v8 ignore next -- one that broke in that moment has no address any more */
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
        // A server that is closed does not look for late requests any more: it would wait for them as for any other.
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
  // Node's own, which `http.close` calls, takes for idle what has been answered and is not yet read.
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

/** One for all requests of a connection: making it takes longer than most of what a request does. */
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

/** As Node names a request that takes too long to arrive. */
export const lateRequest = "ERR_HTTP_REQUEST_TIMEOUT";

/** Whether nothing has come over a connection since its last answer, or ever. */
export function isIdle({ idleAtBytes }: Connection, socket: Duplex): boolean {
  return bytesRead(socket) === idleAtBytes;
}

/** How many bytes came over a connection. */
export function bytesRead(socket: Duplex): number {
  return (socket as Socket).bytesRead; // safe: a server's sockets are the network's
}
