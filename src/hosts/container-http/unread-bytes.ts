import type { Duplex } from "node:stream";
import { getHeapStatistics } from "node:v8";

/** What one connection holds that its client has not read. */
export interface Unread {
  bytes: number;
  /** When it was last seen to become less, by `performance.now()`. */
  movedMs: number;
  /** How much its client had taken then. */
  taken: number;
  /** It was cut for what it held: nothing counts any more. */
  isCut: boolean;
}

interface HoldingRequest {
  readonly outflow?: { taken(): number | undefined };
  isStalled?: boolean;
  drop?: (() => void) | undefined;
}

/** What holds such bytes: a connection. */
export interface Holder {
  readonly unread: Unread;
  readonly requests: Iterable<HoldingRequest> & { readonly size: number };
  readonly session: { destroy(): void } | undefined;
  /** The network's socket. */
  readonly transport: Duplex;
}

/** The bytes that wait for clients: responses that are not read, and requests that were sent before earlier ones were answered. */
export interface UnreadBudget {
  /** How many all connections hold. */
  readonly heldBytes: number;
  /** Whether so much is held that letting go of some comes before fairness. */
  readonly isStrained: boolean;
  /** Whether a connection may begin a request while others of it are unanswered. */
  hasRoom(connection: Holder): boolean;
  /** Holds so many more. Where all together hold too many, connections are cut: those that hold most, for longest. */
  hold(connection: Holder, bytes: number): void;
  release(connection: Holder, bytes: number): void;
  /** Takes one of the places for requests that begin before those before them on their connection are answered. */
  takeAhead(): boolean;
  giveAhead(): void;
}

/**
 * How many of all connections' pipelined requests run at once beside the first of each, at the most. What their answers
 * will take is not known before they are there, and those that wait for the same come all at once.
 */
const mostAhead = 100;
/** What such an answer is taken to have, so that there are fewer where the limit is low. */
const aheadBytes = 1_048_576;

/** What one connection may hold before its requests run one at a time, as a part of the limit. */
const connectionShare = 1 / 8;
/** How much of the limit is held at the most once connections were cut: each look at all makes room for some time. */
const rest = 3 / 4;

const mebibyte = 1_048_576;
/** What V8 adds to the limit of its heap for young objects: three times 64 MiB. */
const youngBytes = 192 * mebibyte;

/** The limit where none is given: 128 MiB, in a small heap a quarter of it, and 8 MiB at the least. */
export function defaultUnreadBytes(heapBytes = getHeapStatistics().heap_size_limit): number {
  return Math.min(128 * mebibyte, Math.max(8 * mebibyte, Math.floor((heapBytes - youngBytes) / 4)));
}

/**
 * Creates the budget of a server.
 *
 * @param known - all connections, by their sockets
 * @param onStrain - is told when much is held, and with each as much that comes on top
 * @param onCut - is told how many connections were cut
 */
export function createUnreadBudget(
  limitBytes: number,
  known: ReadonlyMap<Duplex, Holder>,
  onStrain: () => void,
  onCut: (count: number) => void,
): UnreadBudget {
  const maxAhead = Math.min(mostAhead, Math.max(1, Math.floor(limitBytes / aheadBytes)));
  const strainBytes = limitBytes * connectionShare;
  let held = 0;
  /** How much was held when that was told last. */
  let told = 0;
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
      // One response alone may be larger than all: it is on its way to a client that asked for nothing else.
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
    get isStrained() {
      return held > strainBytes;
    },
    hasRoom: ({ unread }) => unread.bytes < strainBytes && held < limitBytes * rest,
    hold: (connection, bytes) => {
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
    release: ({ unread }, bytes) => {
      if (unread.isCut) return;
      unread.bytes -= bytes;
      unread.movedMs = performance.now();
      letGo(bytes);
    },
    takeAhead: () => {
      if (ahead >= maxAhead) return false;
      ahead += 1;
      return true;
    },
    giveAhead: () => {
      ahead -= 1;
    },
  };
}

/** How much a connection holds, times how long its client has taken nothing of it: who reads keeps much for a moment only. */
function weightOf(connection: Holder, nowMs: number): number {
  const { unread } = connection;
  const taken = takenOf(connection);
  if (taken !== unread.taken) {
    unread.taken = taken;
    unread.movedMs = nowMs;
  }
  return unread.bytes * (nowMs - unread.movedMs + 1);
}

/** How much a client has taken of what is being written. */
function takenOf({ transport, session, requests }: Holder): number {
  let taken = takenByKernel(transport) ?? 0;
  if (session === undefined) return taken;
  for (const request of requests) taken += request.outflow?.taken() ?? 0;
  return taken;
}

/**
 * How many bytes of a connection the kernel has taken, which takes them as the client does; `undefined` where none wait.
 * Node's own timeout of sockets goes by the same number, but what comes counts as progress for it too.
 */
export function takenByKernel(socket: Duplex): number | undefined {
  // Safe: a socket of the network has a handle until it is destroyed, and where it had none, nothing would be cut.
  const { _handle: handle } = socket as {
    _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  };
  return handle && handle.writeQueueSize > 0
    ? handle.bytesWritten - handle.writeQueueSize
    : undefined;
}
