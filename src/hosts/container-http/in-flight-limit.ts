import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Holder, UnreadBudget } from "./unread-bytes.ts";

/** Maximum number of requests in flight, and of open HTTP/2 streams, per connection. */
export const maxInFlight = 100;

export type InFlightLimit = ReturnType<typeof createInFlightLimit>;

export interface LimitedRequest {
  /** Never rejects. */
  work(): Promise<void>;
  /** Called once the request has ended, even if it never ran. */
  ended(): void;
  // The following members belong to `InFlightLimit`.
  /** Unfinished parts, work and response: starts at 2. */
  left: number;
  /** Bytes that the request holds of the budget for unread bytes. Starts at 0. */
  heldBytes: number;
  /** Whether the response was sent or abandoned, so that no bytes are held. */
  hasLeft: boolean;
  /** Whether the request is unanswered and started before earlier ones were answered. */
  isAhead: boolean;
}

/** Whether a request that has left still runs. One that never began has both parts left. */
export function isAbandoned({ left }: LimitedRequest): boolean {
  return left === 1;
}

/** Memory of a waiting request without its content, in bytes. Measured: 1.9 KB. */
const requestBytes = 2_048;

/**
 * Limits the requests in flight of one connection; others wait in order of arrival. A request is in
 * flight until its work has settled, even if its HTTP/2 stream is reset and `leave` was called.
 * Requests run concurrently only while few bytes wait for the client.
 *
 * @param hold - pauses reading while requests wait; the returned function resumes it.
 */
export function createInFlightLimit(
  socket: Duplex,
  connection: Holder,
  budget: UnreadBudget,
  hold?: () => () => void,
) {
  let inFlight = 0;
  let hadToWait = false;
  let isAdvancing = false;
  let release: (() => void) | undefined;
  const waiting = new Set<LimitedRequest>();
  const tryBegin = (request: LimitedRequest): boolean => {
    if (socket.destroyed) return false;
    if (inFlight > 0) {
      // Unread responses queue in memory and fill it up. Without room, a response is being
      // written, and its end calls `advance`.
      const isFull = inFlight >= maxInFlight || socket.writableNeedDrain;
      if (isFull || !budget.hasRoom(connection)) return false;
      // HTTP/2 passes no `hold`, because its responses do not wait for each other.
      if (hold !== undefined && !budget.takeAhead()) return false;
      request.isAhead = hold !== undefined;
    }
    inFlight += 1;
    void request.work().then(() => {
      answered(request);
      countDown(request);
    });
    return true;
  };
  const answered = (request: LimitedRequest) => {
    if (request.isAhead) budget.giveAhead();
    request.isAhead = false;
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
  // In a later turn, because one read may bring thousands of requests, which would delay others.
  // Under strain immediately, so that memory is freed before the next connection is read.
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
    /** Whether any request had to wait. The client may then have sent more than was read. */
    get hadToWait() {
      return hadToWait;
    },
    get isHolding() {
      return release !== undefined;
    },
    /** Runs the request once there is room. */
    enter: (request: LimitedRequest): void => {
      if (inFlight > 0 || waiting.size > 0) holdBytes(request, requestBytes);
      if (waiting.size === 0 && tryBegin(request)) return;
      waiting.add(request);
      hadToWait = true;
      release ??= hold?.();
    },
    answered,
    /** Counts response bytes that wait for the client, until they are released or `leave`. */
    hold: holdBytes,
    release: (request: LimitedRequest, bytes: number): void => {
      /* v8 ignore next -- a destroyed response no longer asks for its body */
      if (!request.hasLeft) releaseBytes(request, bytes);
    },
    /** Reports that the response was sent or abandoned. Called once. */
    leave: (request: LimitedRequest) => {
      request.hasLeft = true;
      if (request.heldBytes > 0) releaseBytes(request, request.heldBytes);
      if (!waiting.delete(request)) return countDown(request);
      request.ended();
      advanceLater();
    },
  };
}

/**
 * Stops reading from an HTTP/1.1 socket until the returned function is called, with `false` if
 * another pause is still active. Node's server resumes the socket after each message, so `resume`
 * is disabled. Data already read is still parsed.
 */
export function holdBack(socket: Socket): (isLast?: boolean) => void {
  const pause = () => void socket.pause();
  socket.resume = () => socket;
  socket.on("resume", pause); // a resume may already be scheduled
  socket.pause();
  return (isLast = true) => {
    socket.off("resume", pause);
    if (!isLast) return;
    Reflect.deleteProperty(socket, "resume");
    socket.resume();
  };
}
