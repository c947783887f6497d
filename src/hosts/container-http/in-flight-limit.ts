import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Holder, UnreadBudget } from "./unread-bytes.ts";

/** How many requests of one connection are in flight at once; as many streams an HTTP/2 connection may have open. */
export const maxInFlight = 100;

/** Limits how many requests of one connection are in flight. The others wait, first come, first served. */
export interface InFlightLimit {
  /** Whether requests had to wait, so that more may have been sent than was read. */
  readonly hadToWait: boolean;
  /** Whether nothing more is read, because some wait. */
  readonly isHolding: boolean;
  /** Does the request's work as soon as there is room. It is in flight until its work has settled and `leave` was called. */
  enter(request: LimitedRequest): void;
  /** Its answer is there. */
  answered(request: LimitedRequest): void;
  /** So many bytes of its answer wait for the client, until it leaves or they are given back. */
  hold(request: LimitedRequest, bytes: number): void;
  /** So many of them do not wait any more. */
  release(request: LimitedRequest, bytes: number): void;
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
  /** What it holds of the budget of unread bytes; 0 at first. */
  heldBytes: number;
  /** Its answer is sent or given up: it holds nothing any more. False at first. */
  hasLeft: boolean;
  /** It was begun before those before it were answered, and has no answer yet. False at first. */
  isAhead: boolean;
}

/** What a request costs beside its bytes, once it was read and others of its connection are unanswered: 1.9 KB were measured. */
const requestBytes = 2_048;

/**
 * Creates the limit of one connection. A handler keeps running when its stream is reset, and counts until it ends: resets
 * make no room. Requests run side by side only while what the connection holds for its client is little.
 *
 * @param hold - stops further requests while some wait; what it returns takes them again
 */
export function createInFlightLimit(
  socket: Duplex,
  connection: Holder,
  budget: UnreadBudget,
  hold?: () => () => void,
): InFlightLimit {
  let inFlight = 0;
  let hadToWait = false;
  let isAdvancing = false;
  let release: (() => void) | undefined;
  const waiting = new Set<LimitedRequest>();
  // Answers that are not read queue in memory; there is always one that is being written, whose end looks again.
  const hasRoom = () =>
    inFlight < maxInFlight && !socket.writableNeedDrain && budget.hasRoom(connection);
  /** Begins a request, where there is room. */
  const tryBegin = (request: LimitedRequest): boolean => {
    if (socket.destroyed) return false;
    if (inFlight > 0) {
      if (!hasRoom()) return false;
      // Of HTTP/2 many are common, and none waits for another.
      if (hold !== undefined) {
        if (!budget.takeAhead()) return false;
        request.isAhead = true;
      }
    }
    inFlight += 1;
    void request.work().then(() => {
      answered(request);
      countDown(request);
    });
    return true;
  };
  const answered = (request: LimitedRequest) => {
    if (!request.isAhead) return;
    request.isAhead = false;
    budget.giveAhead();
  };
  const advance = () => {
    isAdvancing = false;
    for (const request of waiting) {
      if (!tryBegin(request)) return;
      waiting.delete(request);
    }
    release?.();
    release = undefined;
  };
  // In a later turn: the thousands that one read brings would otherwise run before those of other connections. But where
  // much is held they run at once, and are gone before the next connection is read.
  const advanceLater = () => {
    if (isAdvancing || (waiting.size === 0 && release === undefined)) return;
    if (budget.isStrained) return advance();
    isAdvancing = true;
    setImmediate(advance);
  };
  const countDown = (request: LimitedRequest) => {
    request.left -= 1;
    if (request.left > 0) return;
    inFlight -= 1;
    request.ended();
    advanceLater();
  };
  const holdBytes = (request: LimitedRequest, bytes: number) => {
    if (request.hasLeft) return;
    request.heldBytes += bytes;
    budget.hold(connection, bytes);
  };
  const releaseBytes = (request: LimitedRequest, bytes: number) => {
    request.heldBytes -= bytes;
    budget.release(connection, bytes);
  };
  return {
    get hadToWait() {
      return hadToWait;
    },
    get isHolding() {
      return release !== undefined;
    },
    enter: (request) => {
      if (inFlight > 0 || waiting.size > 0) holdBytes(request, requestBytes);
      if (waiting.size === 0 && tryBegin(request)) return;
      waiting.add(request);
      hadToWait = true;
      release ??= hold?.();
    },
    answered,
    hold: holdBytes,
    release: (request, bytes) => {
      /* v8 ignore next -- what is torn down asks for no more of its body */
      if (!request.hasLeft) releaseBytes(request, bytes);
    },
    leave: (request) => {
      request.hasLeft = true;
      if (request.heldBytes > 0) releaseBytes(request, request.heldBytes);
      if (!waiting.delete(request)) return countDown(request);
      request.ended();
      advanceLater();
    },
  };
}

/**
 * Reads nothing from a socket of HTTP/1.1 until the returned function is called. Node's server resumes the socket after
 * each message, even if it is paused here: so `resume` does nothing meanwhile. What one read brought is still parsed.
 *
 * @returns takes `false` where somebody else still holds it back
 */
export function holdBack(socket: Socket): (isLast?: boolean) => void {
  const pause = () => void socket.pause();
  socket.resume = () => socket;
  socket.on("resume", pause); // one that was under way
  socket.pause();
  return (isLast = true) => {
    socket.off("resume", pause);
    if (!isLast) return;
    Reflect.deleteProperty(socket, "resume");
    socket.resume();
  };
}
