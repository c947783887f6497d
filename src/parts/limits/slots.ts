import type { Logger } from "../../base/log/logger.ts";
import { Recent } from "../../base/process/recent.ts";
import type { LineStore } from "./line.ts";
import type { SlotHolder, SlotPlace, SlotStore } from "./slot.ts";
import { heldOf, type SlotParts, takeSlot } from "./take-slot.ts";

export interface Slots {
  /** Whether `take` has returned `false` in this process within the last second. Makes no call. */
  isFull(place: SlotPlace): boolean;
  /** Returns `false` if all slots are held, or the store is throttled. @throws any other error of the stores. */
  take(place: SlotPlace, most: number, holder: Omit<SlotHolder, "sinceMs">): Promise<boolean>;
  /**
   * Returns the rows of a handler, without holders whose claims have ended: a crashed run stays in
   * its row until another run needs the slot. @throws any error of the stores.
   */
  list: SlotStore["list"];
  /** Gives the slot back, after the claim has ended. Never throws: others find out by the claim. */
  leave(place: SlotPlace, owner: string): Promise<void>;
}

/**
 * Slots and lines, loaded for handlers with `concurrency`, and for jobs with an `order` on a server
 * with `r.rateLimit`.
 */
export interface Waiting extends Slots {
  /** Lines of ordered groups whose jobs wait for slots. */
  readonly lines: LineStore;
}

/** Time for which a process remembers that all slots are taken, in milliseconds. */
const fullMs = 1_000;
/** Maximum number of places remembered. */
const maxRemembered = 1_000;

/** Shortest interval between log lines of one place, in milliseconds. */
const lineMs = 60_000;

interface Throttles {
  /** Whether the store has refused a call because it gets too many. */
  isThrottle(error: unknown): boolean;
  readonly log: Pick<Logger, "warn">;
}

/** Without `throttles`, `take` throws every error. */
export function createSlots(parts: SlotParts, throttles?: Throttles): Slots {
  const { store, clock } = parts;
  const fullUntilMs = new Map<string, number>();
  const warned = new Recent<true>(maxRemembered, lineMs);
  const warn = ({ log }: Throttles, place: SlotPlace, error: unknown) => {
    const [name, nowMs] = [textOf(place), clock.now()];
    if (warned.get(name, nowMs)) return;
    warned.set(name, true, nowMs);
    log.warn("slots.throttled", { ...place, reason: String(error) });
  };
  return {
    list: async (handler) => {
      const rows = await store.list(handler);
      return Promise.all(
        rows.map(async ({ place, holders }) => ({
          place,
          holders: await heldOf(parts, holders),
        })),
      );
    },
    isFull: (place) => {
      const leftMs = (fullUntilMs.get(textOf(place)) ?? 0) - clock.now();
      // It is longer if the clock was set back.
      return leftMs > 0 && leftMs <= fullMs;
    },
    take: async (place, most, holder) => {
      const taking = takeSlot(parts, place, most, { ...holder, sinceMs: clock.now() });
      const isTaken = await taking.catch((error: unknown) => {
        // A slot taken by an attempt without a response is free once the claim of the run has ended.
        if (!throttles?.isThrottle(error)) throw error;
        warn(throttles, place, error);
        return false;
      });
      if (isTaken) return true;
      if (fullUntilMs.size >= maxRemembered) fullUntilMs.clear();
      fullUntilMs.set(textOf(place), clock.now() + fullMs);
      return false;
    },
    leave: async (place, owner) => {
      fullUntilMs.delete(textOf(place));
      await store.remove(place, [owner]).catch(() => undefined);
    },
  };
}

function textOf({ handler, limit, tenantId }: SlotPlace): string {
  return JSON.stringify([handler, limit, tenantId]);
}
