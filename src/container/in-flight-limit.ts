import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** How many requests of one connection are in flight at once; as many streams an HTTP/2 connection may have open. */
export const maxInFlight = 100;

/** Limits how many requests of one connection are in flight. The others wait, first come, first served. */
export interface InFlightLimit {
  /** Whether requests had to wait, so that more may have been sent than was read. */
  readonly hadToWait: boolean;
  /** Does the request's work as soon as there is room. It is in flight until its work has settled and `leave` was called. */
  enter(request: LimitedRequest): void;
  /** Its answer is sent or given up. Call it once. */
  leave(request: LimitedRequest): void;
}

/** A request under the limit. */
export interface LimitedRequest {
  /** Never rejects. */
  work(): Promise<void>;
  /** Called when it is over, even if it never ran. */
  ended(): void;
  /** How many of its work and its answer are unfinished: 2 at first, counted down by {@link InFlightLimit}. */
  left: number;
}

/**
 * Creates the limit of one connection. A handler keeps running when its stream is reset, and counts until it ends: resets
 * make no room.
 *
 * @param hold - stops further requests while some wait; what it returns takes them again
 */
export function createInFlightLimit(socket: Duplex, hold?: () => () => void): InFlightLimit {
  let inFlight = 0;
  let hadToWait = false;
  let release: (() => void) | undefined;
  const waiting = new Set<LimitedRequest>();
  // Answers that are not read queue in memory; there is always one that is being written, whose end looks again.
  const hasRoom = () => !socket.destroyed && (inFlight === 0 || (inFlight < maxInFlight && !socket.writableNeedDrain));
  const advance = () => {
    for (const request of waiting) {
      if (!hasRoom()) return;
      waiting.delete(request);
      begin(request);
    }
    release?.();
    release = undefined;
  };
  const begin = (request: LimitedRequest) => {
    inFlight += 1;
    void request.work().then(() => countDown(request));
  };
  const countDown = (request: LimitedRequest) => {
    request.left -= 1;
    if (request.left > 0) return;
    inFlight -= 1;
    request.ended();
    if (waiting.size > 0) advance();
  };
  return {
    get hadToWait() {
      return hadToWait;
    },
    enter: (request) => {
      if (waiting.size === 0 && hasRoom()) return begin(request);
      waiting.add(request);
      hadToWait = true;
      release ??= hold?.();
    },
    leave: (request) => {
      if (!waiting.delete(request)) return countDown(request);
      request.ended();
      advance();
    },
  };
}

/**
 * Reads nothing from a socket of HTTP/1.1 until the returned function is called. Node's server resumes the socket after
 * each message, even if it is paused here: so `resume` does nothing meanwhile. What one read brought is still parsed.
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
