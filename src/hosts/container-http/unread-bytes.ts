import type { Duplex } from "node:stream";
import { getHeapStatistics } from "node:v8";

/** Bytes that one connection holds because its client has not read them. */
export interface Unread {
  bytes: number;
  /** Time at which the client last took bytes, by `performance.now()`. */
  movedMs: number;
  /** Bytes that the client had taken at `movedMs`. */
  taken: number;
  /** Whether the connection was cut because of these bytes, which no longer count. */
  isCut: boolean;
}

export interface Holder {
  readonly unread: Unread;
  readonly requests: Iterable<{
    readonly outflow?: { taken(): number | undefined };
    isStalled?: boolean;
    drop?: (() => void) | undefined;
  }> & { readonly size: number };
  readonly session: { destroy(): void } | undefined;
  readonly transport: Duplex;
}

export type UnreadBudget = ReturnType<typeof createUnreadBudget>;

/**
 * Maximum number of concurrent pipelined requests on all connections, beyond the first of each. The
 * size of a response is unknown until it is ready, and many may become ready together.
 */
const mostAhead = 100;
const mebibyte = 1_048_576; // also the assumed size of a pipelined response

/** Share of the limit above which the requests of a connection run one at a time. */
const connectionShare = 1 / 8;
/** Share of the limit down to which connections are cut, to make room for some time. */
const rest = 3 / 4;

/** Bytes for young objects that V8 includes in its heap limit: three times 64 MiB. */
const youngBytes = 192 * mebibyte;

/** Returns 128 MiB, or a quarter of a small heap, and at least 8 MiB. */
export function defaultUnreadBytes(heapBytes = getHeapStatistics().heap_size_limit): number {
  return Math.min(128 * mebibyte, Math.max(8 * mebibyte, Math.floor((heapBytes - youngBytes) / 4)));
}

/**
 * Creates the limit for unread responses, and for requests sent before earlier ones were answered.
 *
 * @param onStrain - called at each eighth of the limit, as more bytes are held.
 * @param onCut - called with the number of connections that were cut.
 */
export function createUnreadBudget(
  limitBytes: number,
  known: ReadonlyMap<Duplex, Holder>,
  onStrain: () => void,
  onCut: (count: number) => void,
) {
  const maxAhead = Math.min(mostAhead, Math.max(1, Math.floor(limitBytes / mebibyte)));
  const strainBytes = limitBytes * connectionShare;
  let held = 0;
  let told = 0; // bytes held at the last call of `onStrain`
  let ahead = 0;
  const letGo = (bytes: number) => {
    held -= bytes;
    told = held <= strainBytes ? 0 : Math.min(told, held);
  };
  const cut = (socket: Duplex, { unread, requests, session }: Holder) => {
    letGo(unread.bytes);
    unread.bytes = 0;
    unread.isCut = true;
    session?.destroy();
    socket.destroy();
    for (const request of requests) {
      request.isStalled = true;
      request.drop?.();
    }
  };
  const makeRoom = (latest: Holder) => {
    const nowMs = performance.now();
    const holders = [...known]
      // Spares the latest connection if it has one request: a single response may be too large.
      .filter(
        ([, connection]) =>
          connection.unread.bytes > 0 && (connection !== latest || connection.requests.size > 1),
      )
      .map(([socket, connection]) => ({ socket, connection, weight: weightOf(connection, nowMs) }))
      .sort((one, other) => other.weight - one.weight);
    let count = 0;
    for (const { socket, connection } of holders) {
      if (held <= limitBytes * rest) break;
      cut(socket, connection);
      count += 1;
    }
    if (count > 0) onCut(count);
  };
  return {
    get heldBytes() {
      return held;
    },
    /** Whether freeing memory precedes fairness. */
    get isStrained() {
      return held > strainBytes;
    },
    /** Returns whether a connection may start a request while others are unanswered. */
    hasRoom: ({ unread }: Holder) => unread.bytes < strainBytes && held < limitBytes * rest,
    /** Above the limit, cuts the connections that hold most bytes for the longest time. */
    hold: (connection: Holder, bytes: number): void => {
      const { unread } = connection;
      if (unread.isCut) return;
      if (unread.bytes === 0) {
        unread.movedMs = performance.now();
        unread.taken = takenOf(connection);
      }
      unread.bytes += bytes;
      held += bytes;
      if (held > limitBytes) makeRoom(connection);
      if (held <= told + strainBytes) return;
      told = held;
      onStrain();
    },
    release: ({ unread }: Holder, bytes: number): void => {
      if (unread.isCut) return;
      unread.bytes -= bytes;
      unread.movedMs = performance.now();
      letGo(bytes);
    },
    /** Reserves a place, if one is free, for a request that starts before earlier answers. */
    takeAhead: (): boolean => {
      if (ahead >= maxAhead) return false;
      ahead += 1;
      return true;
    },
    giveAhead: (): void => {
      ahead -= 1;
    },
  };
}

/** The weight is low for a client that reads, even if it holds many bytes. */
function weightOf(connection: Holder, nowMs: number): number {
  const { unread } = connection;
  const taken = takenOf(connection);
  if (taken !== unread.taken) {
    unread.taken = taken;
    unread.movedMs = nowMs;
  }
  return unread.bytes * (nowMs - unread.movedMs + 1);
}

function takenOf({ transport, session, requests }: Holder): number {
  let taken = takenByKernel(transport) ?? 0;
  if (session === undefined) return taken;
  for (const request of requests) taken += request.outflow?.taken() ?? 0;
  return taken;
}

/** Returns the bytes that the kernel has taken, at the client's pace; `undefined` if none wait. */
export function takenByKernel(socket: Duplex): number | undefined {
  // Safe: a network socket has a handle until it is destroyed. Without it, no connection is cut.
  const { _handle: handle } = socket as {
    _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  };
  return handle && handle.writeQueueSize > 0
    ? handle.bytesWritten - handle.writeQueueSize
    : undefined;
}
