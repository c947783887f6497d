import type { Server } from "node:net";

/** How many turns of the event loop are waited for at the most: under a flood of connections each may bring one. */
const mostTurns = 1_000;

/**
 * Closes a listener once it has accepted all that came, and calls back when its connections have ended. Node accepts one
 * connection a turn of its event loop; those that wait for that are reset by the kernel as the listener closes, with the
 * requests that they carry. So it closes after a turn that brought none.
 */
export function closeListener(listener: Server, whenEnded: () => void): void {
  let accepted = 0;
  let turns = 0;
  const count = () => {
    accepted += 1;
  };
  const turn = () => {
    const before = accepted;
    setImmediate(() => {
      turns += 1;
      if (accepted > before && turns < mostTurns) return turn();
      listener.off("connection", count);
      listener.close(whenEnded);
    });
  };
  listener.on("connection", count);
  turn();
}
