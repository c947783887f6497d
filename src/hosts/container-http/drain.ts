import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";
import { type Connections, isIdle } from "./connections.ts";

/**
 * Requests in flight. `requests` and `requestIds` have the same order, up to {@link mostNamed}
 * entries.
 */
export interface UnderWay {
  readonly requests: readonly string[];
  readonly requestIds: readonly string[];
  readonly count: number;
  readonly upgraded: number;
}

export interface Drain {
  /** Closes the listener, and each connection once it is idle. Calls back once all have ended. */
  close(whenEnded: () => void): void;
  /** Closes idle connections. New connections and partial requests get a short grace period. */
  closeIdle(): void;
  /** Aborts the signals of all requests in progress and fails the bodies that have not arrived. */
  abort(reason: unknown): void;
  underWay(): UnderWay;
  cut(): void;
}

/** Maximum number of requests, events and jobs that a log line names. */
export const mostNamed = 20;

/** Time between two checks for connections that became idle during the drain, in milliseconds. */
const sweepMs = 100;

/**
 * Age until which an unused connection stays open during the drain, in milliseconds: its first
 * request may be on its way and would be lost.
 */
const newMs = 500;

/** Time for the rest of an incomplete request head after the listener closes, in milliseconds. */
const restOfHeadMs = 500;

/** Node's code for a request that takes too long to arrive. */
export const lateRequest = "ERR_HTTP_REQUEST_TIMEOUT";

export function createDrain(
  http: HttpServer,
  { known, shaking }: Connections,
  draining: AbortSignal,
): Drain {
  let closingSinceMs: number | undefined;
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
      if (isIdle(connection, socket)) {
        if (!isNew) socket.destroy();
      } else if (isOver) {
        // A closed server no longer checks for late requests and would wait for them indefinitely.
        const late = Object.assign(new Error("Shutting down"), { code: lateRequest });
        http.emit("clientError", late, socket);
      }
    }
    if (isOver) for (const socket of shaking.values()) socket.destroy();
  };
  // Replaces Node's method, which `http.close` calls and which treats an answered connection as
  // idle even if its next request has not been read yet.
  http.closeIdleConnections = closeIdle;
  draining.addEventListener("abort", () => {
    for (const { requests, upgraded, session, lingering } of known.values()) {
      upgraded?.draining.abort(draining.reason);
      lingering?.hurry();
      if (requests.size > 0) session?.retire();
    }
  });
  return {
    close: (whenEnded) => {
      const sweep = setInterval(closeIdle, sweepMs);
      closeListener(http, () => {
        clearInterval(sweep);
        whenEnded();
      });
      closeIdle();
    },
    closeIdle,
    abort: (reason) => {
      for (const { requests, failBody } of known.values()) {
        for (const request of requests) request.abort(reason);
        failBody?.(reason);
      }
    },
    underWay: () => underWay(known),
    cut: () => {
      for (const [socket, { session }] of known) {
        session?.destroy();
        socket.destroy();
      }
      for (const socket of shaking.values()) socket.destroy();
    },
  };
}

function underWay(known: Connections["known"]): UnderWay {
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
}

/** Maximum number of event loop turns to wait, because in a flood, each may accept a connection. */
const mostTurns = 1_000;

/**
 * Longest event loop turn that ends the wait, in milliseconds. A connection that arrives during the
 * turn may be lost.
 */
const shortMs = 0.2;

/** Longest wait for a turn of at most `shortMs`, in milliseconds. */
const patienceMs = 50;

/**
 * Closes a listener once it has accepted all pending connections, and calls back when its
 * connections have ended. Node accepts one connection per turn of the event loop, and on close, the
 * kernel resets those that still wait, so the listener closes after a short turn that accepted
 * none. A turn starts by polling for connections, so a connection that arrives between the poll and
 * the close is still lost: see `docs/container.md`.
 */
export function closeListener(listener: Server, whenEnded: () => void): void {
  const beganMs = performance.now();
  let accepted = 0;
  let turns = 0;
  const count = () => {
    accepted += 1;
  };
  const turn = () => {
    const before = accepted;
    const turnedMs = performance.now();
    setImmediate(() => {
      const nowMs = performance.now();
      const isLong = nowMs - turnedMs > shortMs && nowMs - beganMs < patienceMs;
      turns += 1;
      if ((accepted > before || isLong) && turns < mostTurns) return turn();
      listener.off("connection", count);
      listener.close(whenEnded);
    });
  };
  listener.on("connection", count);
  turn();
}
