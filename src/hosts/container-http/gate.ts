import { setTimeout as sleep } from "node:timers/promises";

/** Requests wait at the gate of a server that listens before it is ready. */
export interface Gate {
  readonly isOpen: boolean;
  /** Resolves to whether the request may pass: `false` after 10 s, or if the start has failed. */
  opened(): Promise<boolean>;
  open(): void;
  /** Turns away those that wait and those that come. */
  fail(): void;
}

/** Longest wait of a request, in milliseconds. */
const mostMs = 10_000;

export function createGate(limitMs = mostMs): Gate {
  const { promise: decided, resolve } = Promise.withResolvers<boolean>();
  let isOpen = false;
  return {
    get isOpen() {
      return isOpen;
    },
    opened: async () => {
      const waiting = new AbortController();
      const late = sleep(limitMs, false, { signal: waiting.signal, ref: false });
      late.catch(() => undefined);
      try {
        return await Promise.race([decided, late]);
      } finally {
        waiting.abort();
      }
    },
    open: () => {
      isOpen = true;
      resolve(true);
    },
    fail: () => resolve(false),
  };
}
