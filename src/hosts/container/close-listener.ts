import type { Server } from "node:net";

/** Limit of event loop turns to wait for: in a flood of connections, every turn may accept one. */
const mostTurns = 1_000;

/**
 * Longest duration of a short turn, in milliseconds. Connections that arrive during the turn that
 * ends the wait arrive within this time.
 */
const shortMs = 0.2;

/** Time to wait for a short turn, in milliseconds. */
const patienceMs = 50;

/**
 * Closes a listener once it has accepted all pending connections, and calls back when its
 * connections have ended. Node accepts one connection per turn of the event loop. When the listener
 * closes, the kernel resets the connections that still wait, along with their requests. The
 * listener therefore closes after a short turn that accepted no connection. A turn starts by
 * polling for connections, so a connection that arrives between the poll and the close is lost.
 * That gap cannot be zero: see `docs/container.md`.
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
