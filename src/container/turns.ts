import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How many requests of one connection are in flight at once; as many streams an HTTP/2 connection may have open. */
export const maxInFlight = 100;

/** Gives the requests of one connection their turns, in the order they came. */
export interface Turns {
  /** Whether requests had to wait, so that more may have been sent than was read. */
  readonly hadToWait: boolean;
  /**
   * Does `work` in its turn. It is in flight from then on, until `work` has settled and its answer is out or given up:
   * then comes `ended`, also where it never had its turn.
   *
   * @returns says that its answer is out or given up, once.
   */
  enter(work: () => Promise<void>, ended: () => void): () => void;
}

/**
 * Bounds what runs of one connection. A handler goes on when its stream was reset, and counts until it has ended: resets
 * make no room.
 *
 * @param hold - stops further requests while some wait; what it returns takes them again
 */
export function createTurns(socket: Duplex, hold?: () => () => void): Turns {
  let inFlight = 0;
  let hadToWait = false;
  let release: (() => void) | undefined;
  const waiting = new Set<() => void>();
  // Answers that are not read queue in memory; there is always one that is being written, whose end looks again.
  const hasRoom = () => !socket.destroyed && (inFlight === 0 || (inFlight < maxInFlight && !socket.writableNeedDrain));
  const advance = () => {
    for (const begin of waiting) {
      if (!hasRoom()) return;
      waiting.delete(begin);
      begin();
    }
    release?.();
    release = undefined;
  };
  return {
    get hadToWait() {
      return hadToWait;
    },
    enter: (work, ended) => {
      let left = 2;
      const leave = () => {
        left -= 1;
        if (left > 0) return;
        inFlight -= 1;
        ended();
        if (waiting.size > 0) advance();
      };
      const begin = () => {
        inFlight += 1;
        void work().then(leave);
      };
      if (waiting.size === 0 && hasRoom()) begin();
      else {
        waiting.add(begin);
        hadToWait = true;
        release ??= hold?.();
      }
      return () => {
        if (!waiting.delete(begin)) return leave();
        ended();
        advance();
      };
    },
  };
}

/**
 * Reads nothing from a socket of HTTP/1.1 until the returned function is called. Node's server resumes the socket after
 * each message, whoever has paused it: so `resume` itself does nothing meanwhile. What one read had brought is parsed.
 */
export function holdBack(socket: Socket): () => void {
  const pause = () => void socket.pause();
  socket.resume = () => socket;
  socket.on("resume", pause); // one that was under way
  socket.pause();
  return () => {
    Reflect.deleteProperty(socket, "resume");
    socket.off("resume", pause);
    socket.resume();
  };
}
