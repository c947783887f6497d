import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { InFlightLimit } from "./in-flight-limit.ts";
import { takenByKernel, type Unread } from "./unread-bytes.ts";

/** Request in progress, or waiting for its turn. */
export interface OpenRequest {
  /** Empty until the request is served. */
  requestId: string;
  readonly method: string;
  readonly path: string;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Called if the connection closes before the response is complete. */
  leave?(): void;
  /** Set once the response is ready. */
  readonly log?: Logger | undefined;
  /** Progress of an HTTP/2 response. */
  outflow?: {
    /** Returns the bytes that the client has taken; `undefined` if none wait for it. */
    taken(): number | undefined;
    reset(): void;
  };
  /** Whether the request was ended, and logged, because its client does not read. */
  isStalled?: boolean;
  /** Ends the wait for earlier responses, because the connection is cut. */
  drop?: (() => void) | undefined;
}

export interface Connection {
  /** Requests in progress, in order of arrival. */
  readonly requests: SmallSet<OpenRequest>;
  readonly openedMs: number;
  /** Bytes received by the end of the last response. The connection is idle until more arrive. */
  idleAtBytes: number;
  /** Whether no request follows, because the parser failed or Node has detached the socket. */
  isBroken: boolean;
  /** Whether the client was notified of the close. Later requests are ignored (RFC 9112, 9.6). */
  isClosing: boolean;
  /** Whether the rest of a body is discarded, because its request was answered early. */
  isDiscarding: boolean;
  failBody: ((error: unknown) => void) | undefined;
  /** Error for a later read of a body whose rest will not arrive. */
  bodyFailure: PipelineError | undefined;
  upgraded:
    | { readonly requestId: string; readonly path: string; readonly draining: AbortController }
    | undefined;
  /** `undefined` for HTTP/1.1. */
  session:
    | {
        /** Makes the client use another connection, and serves requests on their way. */
        retire(): void;
        /** Refuses new requests, and closes once all others are answered. */
        close(): void;
        destroy(): void;
      }
    | undefined;
  readonly unread: Unread;
  /** Set at the first HTTP/1.1 request. */
  inFlight: InFlightLimit | undefined;
  /** Sends the FIN of a lingering close now and closes soon, because the process drains. */
  hurry: (() => void) | undefined;
  /** Network socket, below the TLS socket. */
  transport: Duplex;
  /** Abort reason, one per connection: creating one takes longer than most steps of a request. */
  readonly departure: () => DOMException;
}

export interface Connections {
  of(socket: Duplex): Connection;
  readonly known: ReadonlyMap<Duplex, Connection>;
  /** Requests whose client has gone while their handler runs. */
  readonly abandoned: Set<OpenRequest>;
  /** Network sockets whose TLS handshake is in progress, by address. */
  readonly shaking: ReadonlyMap<string, Socket>;
}

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
        hurry: undefined,
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
    // The TLS handshake creates a second socket on top of the network socket.
    http.on("connection", (socket) => {
      const address = addressOf(socket);
      shaking.set(address, socket);
      socket.once("close", () => shaking.delete(address));
    });
    http.on("secureConnection", (socket: Socket) => {
      const address = addressOf(socket);
      /* v8 ignore next -- a connection that broke at that moment no longer has an address */
      follow(socket).transport = shaking.get(address) ?? socket;
      shaking.delete(address);
    });
  } else http.on("connection", follow);
  return { of, known, abandoned: new Set(), shaking };
}

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

/** Whether no bytes have arrived since the last response or, without one, at all. */
export function isIdle({ idleAtBytes }: Connection, socket: Duplex): boolean {
  return bytesRead(socket) === idleAtBytes;
}

/** Event loop turns without a pause after which all data that had arrived is read. */
const turnsOfRead = 2;

/**
 * Cuts a connection that has not sent anything in time. It is read first, because its data may have
 * arrived while the process was blocked or held all connections back.
 */
export function cutIfSilent(connection: Connection, socket: Duplex, left = turnsOfRead): void {
  setImmediate(() => {
    if (!isIdle(connection, socket)) return;
    const turns = socket.isPaused() ? turnsOfRead : left - 1;
    if (turns === 0) socket.destroy();
    else cutIfSilent(connection, socket, turns);
  });
}

export function bytesRead(socket: Duplex): number {
  return (socket as Socket).bytesRead; // safe: a server's sockets are network sockets
}

type Writer = Connection | OpenRequest;

/** Longest time between two checks, in milliseconds. */
const mostLookMs = 5_000;

/** Minimum read rate in bytes per second, so that a byte now and then does not keep a response. */
const leastBytesASecond = 1_024;

/**
 * Cuts connections and HTTP/2 streams whose client has taken almost nothing for `timeoutMs`, or up
 * to a quarter longer. One check every few seconds replaces a timer for each.
 */
export function cutStalled(
  http: HttpServer,
  { known }: Connections,
  timeoutMs: number,
  log: Logger,
): void {
  const leastBytes = Math.ceil((timeoutMs / 1_000) * leastBytesASecond);
  /** Bytes taken at each writer's last sufficient progress, and its time. */
  type Marks = Map<Writer, { readonly taken: number; readonly sinceMs: number }>;
  const everyMs = Math.min(mostLookMs, timeoutMs / 4);
  let marks: Marks = new Map();
  /** Counts the checks: time in which the process was blocked, and wrote nothing, does not count. */
  let countedMs = 0;
  const look = () => {
    countedMs += everyMs;
    const seen: Marks = new Map();
    const isStalled = (writer: Writer, taken: number | undefined): boolean => {
      if (taken === undefined) return false;
      const mark = marks.get(writer);
      const isMoving = mark === undefined || taken >= mark.taken + leastBytes;
      if (!isMoving && countedMs - mark.sinceMs >= timeoutMs) return true;
      seen.set(writer, isMoving ? { taken, sinceMs: countedMs } : mark);
      return false;
    };
    for (const [socket, connection] of known) {
      const { requests, upgraded, session, transport } = connection;
      if (upgraded !== undefined) continue;
      if (isStalled(connection, takenByKernel(transport))) {
        report(
          log,
          [...requests].find((request) => request.log !== undefined),
          timeoutMs,
        );
        for (const request of requests) request.isStalled = true;
        session?.destroy();
        socket.destroy();
        continue;
      }
      if (session === undefined) continue; // HTTP/1.1 writes its responses one after the other
      for (const request of requests) {
        if (!isStalled(request, request.outflow?.taken())) continue;
        report(log, request, timeoutMs);
        request.isStalled = true;
        request.outflow?.reset();
      }
    }
    marks = seen;
  };
  const timer = setInterval(look, everyMs).unref();
  http.once("close", () => clearInterval(timer));
}

function report(log: Logger, request: OpenRequest | undefined, timeoutMs: number): void {
  (request?.log ?? log).warn("response.stalled", {
    method: request?.method,
    path: request?.path.slice(0, 200),
    timeoutMs,
  });
}

/**
 * Ordered set for few members. A `Set` reallocates each time it becomes empty, once per request of
 * a connection (`http-no-log` in `bench/results.json`).
 */
export class SmallSet<Member> implements Iterable<Member> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  get last(): Member | undefined {
    return this.#members.at(-1);
  }

  add(member: Member): void {
    this.#members.push(member);
  }

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
