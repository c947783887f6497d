import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { InFlightLimit } from "./in-flight-limit.ts";
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

export interface Connections {
  of(socket: Duplex): Connection;
  /** Open connections by socket. */
  readonly known: ReadonlyMap<Duplex, Connection>;
  /** Network sockets whose TLS handshake is in progress, by address. */
  readonly shaking: ReadonlyMap<string, Socket>;
}

/** Tracks the connections of `http`. */
export function followConnections(http: HttpServer, isTls: boolean): Connections {
  const known = new Map<Duplex, Connection>();
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
  return { of, known, shaking };
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

/** Returns whether no bytes have arrived since the last response, or at all. */
export function isIdle({ idleAtBytes }: Connection, socket: Duplex): boolean {
  return bytesRead(socket) === idleAtBytes;
}

export function bytesRead(socket: Duplex): number {
  return (socket as Socket).bytesRead; // safe: a server's sockets are network sockets
}

/**
 * Set in insertion order that rarely has more than a few members. A `Set` reallocates each time it
 * has become empty, which happens once per request of a connection (`http-no-log` in
 * `bench/results.json`).
 */
export class SmallSet<Member> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    this.#members.push(member);
  }

  /** Removes a member and returns whether the set had it. */
  delete(member: Member): boolean {
    const members = this.#members;
    if (members[0] === member) {
      if (members.length === 1) members.pop();
      else members.shift();
      return true;
    }
    const index = members.indexOf(member);
    if (index !== -1) members.splice(index, 1);
    return index !== -1;
  }

  /** Iterates over a copy, so that members may be removed during the iteration. */
  [Symbol.iterator](): Iterator<Member> {
    return [...this.#members].values();
  }
}
