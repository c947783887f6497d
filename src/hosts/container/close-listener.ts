import type { Server } from "node:net";

/** How many turns of the event loop are waited for at the most: under a flood of connections each may bring one. */
const mostTurns = 1_000;

/** A turn in which little else was done, in milliseconds: connections that arrived during it arrived within that time. */
const shortMs = 0.2;

/** How long a short one is waited for, in milliseconds. */
const patienceMs = 50;

/**
 * Closes a listener once it has accepted all that came, and calls back when its connections have ended. Node accepts one
 * connection a turn of its event loop; those that wait for that are reset by the kernel as the listener closes, with the
 * requests that they carry. So it closes after a turn that brought none, and a short one: a turn begins with the look for
 * connections, and what comes between that and the close is lost. That time cannot be nothing: see `docs/container.md`.
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
