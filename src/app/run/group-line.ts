import { arrival, dueFrom, joined, left, type Place } from "../../parts/limits/line.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import { placeOf } from "../../parts/messages/waited.ts";
import { expiry, longestMessageMs } from "../../parts/once/claim.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Place of a received job in the line of its ordered group. */
export interface GroupLine {
  /** Whether no job of the group waits before this one. */
  readonly mayRun: boolean;
  /**
   * Stores the job, to be sent again after `afterMs` and after all jobs that wait before it.
   * @param rowOf - returns the row for when it is due, in epoch milliseconds, and its place.
   */
  wait(afterMs: number, rowOf: (dueMs: number, place: Place) => OutboxRow): Promise<void>;
  /** Lets the next job run, once this one is done. Never throws: returns whether it could. */
  leave(): Promise<boolean>;
}

/** Attempts to change a line that others change as well: only processes that have stalled. */
const maxTries = 5;

/** @throws any error of the store; `wait` of its result also throws them. */
export async function openLine(
  { clock, log }: Pick<Runtime, "clock" | "log">,
  { slots, outbox }: Pick<Adapters, "slots" | "outbox">,
  queue: Pick<MessageQueue, "name">,
  { id: messageId, group: given }: QueueMessage,
  read: Extract<ReadMessage, { readonly job: unknown }>,
): Promise<GroupLine> {
  const { lines } = await slots.open();
  const group = given ?? read.job.jobId;
  const place = placeOf(read.waited);
  const { tenantId } = read.job;
  /** Changes the line until no other process has changed it in between. */
  const change = async (next: (line: Found) => Partial<Changed> | undefined): Promise<void> => {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const read = await lines.read(group);
      const changed = next(arrival(read, place));
      if (changed?.line === undefined) return;
      const { line, items = [] } = changed;
      const expiresAt = expiry(clock.now(), 2 * longestMessageMs);
      if (await lines.change({ group, read, line, tenantId, expiresAt, items })) return;
    }
    throw new Error("the line of its group keeps changing");
  };
  const { mayRun } = arrival(await lines.read(group), place);
  return {
    mayRun,
    wait: (afterMs, rowOf) =>
      change((found) => {
        const fromMs = dueFrom(found.mayRun, clock.now(), afterMs);
        const next = joined(found.line, place, fromMs);
        return { line: next.line, items: outbox.items(rowOf(next.line.dueMs, next.place)) };
      }),
    leave: async () => {
      if (place === undefined) return true;
      try {
        await change(({ line }) => {
          const next = left(line, place);
          return next === line ? undefined : { line: next };
        });
        return true;
      } catch (error) {
        log.warn("queue.line_failed", { queue: queue.name, messageId, reason: String(error) });
        return false;
      }
    },
  };
}

type Found = ReturnType<typeof arrival>;
type Changed = Pick<Parameters<Adapters["claims"]["commit"]>[0], "items"> & Pick<Found, "line">;
