import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";
import { type Connections, isIdle } from "./connections.ts";

export type Drain = ReturnType<typeof createDrain>;

/** Maximum number of requests, events and jobs that a log line names. */
export const mostNamed = 20;

/** Time between two checks for idle connections, in milliseconds. */
const sweepMs = 100;

/**
 * Age until which an unused connection stays open during the drain, because its first request may
 * be on its way, and time for the rest of an incomplete request head, in milliseconds.
 */
const [newMs, restOfHeadMs] = [500, 500];

/** Node's error code for a late request. */
export const lateRequest = "ERR_HTTP_REQUEST_TIMEOUT";

export function createDrain(
  http: HttpServer,
  { known, abandoned, shaking }: Connections,
  draining: AbortSignal,
) {
  let closingSinceMs: number | undefined;
  let isCut = false;
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
        // A closed server no longer checks for late requests and would wait for them forever.
        const late = Object.assign(new Error("Shutting down"), { code: lateRequest });
        http.emit("clientError", late, socket);
      }
    }
    if (isOver) for (const socket of shaking.values()) socket.destroy();
  };
  // `http.close` calls Node's method, which treats an answered connection as idle even if its next
  // request has not been read yet.
  http.closeIdleConnections = closeIdle;
  draining.addEventListener("abort", () => {
    for (const { requests, upgraded, session, hurry } of known.values()) {
      upgraded?.draining.abort(draining.reason);
      hurry?.();
      if (requests.size > 0) session?.retire();
    }
  });
  // Node reports that the server has closed before it reports that its last sockets have.
  const isBusy = () =>
    abandoned.size > 0 || [...known.values()].some(({ requests }) => requests.size > 0);
  return {
    /**
     * Closes the listener, and each connection once it is idle. Calls back once all have ended, and
     * the handlers whose clients have gone, unless they are cut off.
     */
    close: (whenEnded: () => void): void => {
      let isClosed = false;
      const look = () => {
        if (!isClosed) return closeIdle();
        if (!isCut && isBusy()) return;
        clearInterval(sweep);
        whenEnded();
      };
      const sweep = setInterval(look, sweepMs);
      closeListener(http, () => {
        isClosed = true;
        look();
      });
      closeIdle();
    },
    closeIdle,
    abort: (reason: unknown): void => {
      for (const { requests, failBody } of known.values()) {
        for (const request of requests) request.abort(reason);
        failBody?.(reason);
      }
      for (const request of abandoned) request.abort(reason);
    },
    underWay: () => underWay(known, abandoned),
    cut: (): void => {
      isCut = true;
      for (const [socket, { session }] of known) {
        session?.destroy();
        socket.destroy();
      }
      for (const socket of shaking.values()) socket.destroy();
    },
  };
}

/** Names the first requests, with IDs in the same order. */
function underWay(known: Connections["known"], abandoned: Connections["abandoned"]) {
  const all = [...known.values()];
  const upgraded = all.flatMap((connection) => connection.upgraded ?? []);
  const requests = [...all.flatMap((connection) => [...connection.requests]), ...abandoned];
  const names = [
    ...requests.map(({ method, path }) => `${method} ${path.slice(0, 200)}`),
    ...upgraded.map(({ path }) => `GET ${path.slice(0, 200)} (upgraded)`),
  ];
  const ids = [...requests, ...upgraded].map(({ requestId }) => requestId);
  return {
    requests: names.slice(0, mostNamed),
    requestIds: ids.slice(0, mostNamed),
    count: ids.length,
    upgraded: upgraded.length,
  };
}

/** Maximum number of event loop turns to wait, because in a flood, each accepts a connection. */
const mostTurns = 1_000;

/**
 * Longest event loop turn that ends the wait, because a connection that arrives during it may be
 * lost, and longest wait for such a turn, in milliseconds.
 */
const [shortMs, patienceMs] = [0.2, 50];

/**
 * Closes a listener once it has accepted all pending connections, and calls back when they have
 * ended. Node accepts one connection per turn of the event loop, and on close, the kernel resets
 * those that still wait, so the listener closes after a short turn that accepted none. A connection
 * that arrives between the turn's poll and the close is still lost: see `docs/container.md`.
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
