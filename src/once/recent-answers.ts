import type { Clock } from "../process/clock.ts";
import type { Answer } from "./answer.ts";
import { skewMs } from "./claim.ts";

/** An answer, and what it was given to. */
export interface RecentAnswer {
  readonly answer: Answer;
  readonly fingerprint: string | undefined;
  /** When the claim expires, in seconds since the epoch. */
  readonly expiresAt: number;
}

/** The answers that this process has stored lately: a repeat of them takes no call. */
export interface RecentAnswers {
  get(key: string): RecentAnswer | undefined;
  put(key: string, answer: RecentAnswer): void;
}

/** Larger answers are left to the store. */
const largestBytes = 65_536;
const maxBytes = 8 * 1_048_576;
const maxEntries = 2_000;

/** Creates a bounded memory of answers; the oldest go first. */
export function createRecentAnswers(clock: Clock): RecentAnswers {
  const entries = new Map<string, RecentAnswer & { readonly bytes: number }>();
  let total = 0;
  const forget = (key: string) => {
    total -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  };
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      // Another process's clock may be ahead: for its last seconds the store decides.
      if (entry.expiresAt * 1000 - skewMs > clock.now()) return entry;
      forget(key);
      return undefined;
    },
    put: (key, { answer, fingerprint, expiresAt }) => {
      const bytes = key.length + (answer.body?.length ?? 0) + 256;
      forget(key);
      if (bytes > largestBytes) return;
      entries.set(key, { answer, fingerprint, expiresAt, bytes });
      total += bytes;
      if (total <= maxBytes && entries.size <= maxEntries) return;
      // A tenth at once: the way to the oldest leads past all that went before it.
      for (const oldest of entries.keys()) {
        if (total <= maxBytes * 0.9 && entries.size <= maxEntries * 0.9) break;
        forget(oldest);
      }
    },
  };
}
