import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How many requests of one connection are in flight at once; as many streams an HTTP/2 connection may have open. */
export const maxInFlight = 100;

/** Gives the requests of one connection their turns, in the order they came. */
export interface Turns {
  /** Whether requests had to wait, so that more may have been sent than was read. */
  readonly hadToWait: boolean;
  /** Does its work in its turn. It is in flight from then on, until its work has settled and `leave` was called. */
  enter(turn: Turn): void;
  /** Its answer is out or given up; to be said once. */
  leave(turn: Turn): void;
}

/** What has its turn. */
export interface Turn {
  /** Never rejects. */
  work(): Promise<void>;
  /** It is over, also where it never had its turn. */
  ended(): void;
  /** Whether its work and its answer are yet to end: 2 at first, and counted down by {@link Turns}. */
  left: number;
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
  const waiting = new Set<Turn>();
  // Answers that are not read queue in memory; there is always one that is being written, whose end looks again.
  const hasRoom = () => !socket.destroyed && (inFlight === 0 || (inFlight < maxInFlight && !socket.writableNeedDrain));
  const advance = () => {
    for (const turn of waiting) {
      if (!hasRoom()) return;
      waiting.delete(turn);
      begin(turn);
    }
    release?.();
    release = undefined;
  };
  const begin = (turn: Turn) => {
    inFlight += 1;
    void turn.work().then(() => countDown(turn));
  };
  const countDown = (turn: Turn) => {
    turn.left -= 1;
    if (turn.left > 0) return;
    inFlight -= 1;
    turn.ended();
    if (waiting.size > 0) advance();
  };
  return {
    get hadToWait() {
      return hadToWait;
    },
    enter: (turn) => {
      if (waiting.size === 0 && hasRoom()) return begin(turn);
      waiting.add(turn);
      hadToWait = true;
      release ??= hold?.();
    },
    leave: (turn) => {
      if (!waiting.delete(turn)) return countDown(turn);
      turn.ended();
      advance();
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
