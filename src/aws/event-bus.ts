import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import type { EventBus } from "../events/outbox.ts";

/** EventBridge takes so many events in one call, and so many bytes. */
const [maxEntries, maxBytes] = [10, 262_144];
/** What an entry has beside its detail. */
const entryBytes = 512;
/** How often entries that failed are put again. */
const maxAttempts = 4;

type Entry = Parameters<EventBus["put"]>[0][number];

/** What events are put on the bus with. */
export interface EventBusOptions {
  readonly busName: string;
  /** The `source` of every event: rules look for it. */
  readonly source: string;
  /** Waits a moment before attempt `attempt`, the first repetition being 1. */
  readonly pause: (attempt: number) => Promise<void>;
}

/** A bus of EventBridge: events go ten at a time, and of those that failed these alone are put again. */
export function eventBridgeBus(client: EventBridgeClient, { busName, source, pause }: EventBusOptions): EventBus {
  /** Puts a batch; gives for each why it failed. */
  const putBatch = async (batch: readonly Entry[]): Promise<(string | undefined)[]> => {
    const { PutEventsCommand } = await import("./eventbridge-sdk.ts");
    const { Entries = [] } = await client.send(
      new PutEventsCommand({
        Entries: batch.map(({ type, text }) => ({ EventBusName: busName, Source: source, DetailType: type, Detail: text })),
      }),
    );
    return batch.map((_, index) => {
      const { EventId, ErrorCode, ErrorMessage = "" } = Entries[index] ?? {};
      return EventId === undefined ? `${ErrorCode ?? "no answer"} ${ErrorMessage}`.trim() : undefined;
    });
  };
  return {
    put: async (events) => {
      const reasons: (string | undefined)[] = events.map(() => undefined);
      let left = events.map((_, index) => index);
      for (let attempt = 0; left.length > 0 && attempt < maxAttempts; attempt += 1) {
        if (attempt > 0) await pause(attempt);
        const failed: number[] = [];
        for (const batch of batches(events, left)) {
          const outcome = await putBatch(batch.map((index) => events[index] as Entry)); // safe: an index of the list
          for (const [at, index] of batch.entries()) {
            reasons[index] = outcome[at];
            if (outcome[at] !== undefined) failed.push(index);
          }
        }
        left = failed;
      }
      return reasons;
    },
  };
}

/** The events of these indexes, as many at a time as one call takes. */
function batches(events: readonly Entry[], indexes: readonly number[]): number[][] {
  const all: number[][] = [];
  let bytes = 0;
  for (const index of indexes) {
    const size = Buffer.byteLength((events[index] as Entry).text) + entryBytes; // safe: an index of the list
    const current = all.at(-1);
    if (current === undefined || current.length === maxEntries || bytes + size > maxBytes) {
      all.push([index]);
      bytes = size;
    } else {
      current.push(index);
      bytes += size;
    }
  }
  return all;
}
