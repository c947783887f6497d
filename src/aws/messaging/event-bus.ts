import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import type { EventBus, Refusal } from "../../parts/messages/outbox.ts";
import { isInstrumented } from "../clients/instrumented.ts";
import { callFailure, entryRefusal } from "./put-events-failure.ts";

/** EventBridge takes so many events in one call, and so many bytes. */
const [maxEntries, maxBytes] = [10, 262_144];
/** What an entry has beside its detail. */
const entryBytes = 512;
/** How often entries that failed are put again. */
const maxAttempts = 4;
/** After so many calls in a row that failed as a whole, and not because of their entries, the bus is left alone. */
const maxFailedCalls = 3;

type Entry = Parameters<EventBus["put"]>[0][number];

/** What events are put on the bus with. */
export interface EventBusOptions {
  readonly busName: string;
  /** The `source` of every event: rules look for it. */
  readonly source: string;
  /** Waits a moment before attempt `attempt`, the first repetition being 1. */
  readonly pause: (attempt: number) => Promise<void>;
}

/**
 * A bus of EventBridge: events go ten at a time, and of those that failed these alone are put again. Where a call is refused
 * as a whole, which one of its entries may be to blame for, they are put one by one.
 */
export function eventBridgeBus(
  client: EventBridgeClient,
  { busName, source, pause }: EventBusOptions,
): EventBus {
  const send = async (batch: readonly Entry[]): Promise<readonly (Refusal | undefined)[]> => {
    const { PutEventsCommand } = await import("../clients/eventbridge-sdk.ts");
    const { Entries = [] } = await client.send(
      new PutEventsCommand({
        Entries: batch.map(({ type, text }) => ({
          EventBusName: busName,
          Source: source,
          DetailType: type,
          Detail: text,
        })),
      }),
    );
    return batch.map((_, index) => entryRefusal(Entries[index]));
  };
  return {
    name: busName,
    isTraced: isInstrumented(client),
    put: async (events) => {
      const refusals: (Refusal | undefined)[] = events.map(() => undefined);
      let failedCalls = 0;
      let down: Refusal | undefined;
      const putThem = async (indexes: readonly number[]): Promise<void> => {
        if (down !== undefined) {
          for (const index of indexes) refusals[index] = down;
          return;
        }
        try {
          const answers = await send(indexes.map((index) => events[index] as Entry)); // safe: indexes of the list
          failedCalls = 0;
          for (const [at, index] of indexes.entries()) refusals[index] = answers[at];
        } catch (error) {
          const { mayBeOneEntrys, ...failure } = callFailure(error);
          for (const index of indexes) refusals[index] = failure;
          failedCalls = failure.isFinal ? 0 : failedCalls + 1;
          if (!mayBeOneEntrys || failedCalls === maxFailedCalls) down = failure;
          else if (indexes.length > 1) for (const index of indexes) await putThem([index]);
        }
      };
      let left = events.map((_, index) => index);
      for (
        let attempt = 0;
        left.length > 0 && down === undefined && attempt < maxAttempts;
        attempt += 1
      ) {
        if (attempt > 0) await pause(attempt);
        for (const batch of batches(events, left)) await putThem(batch);
        left = left.filter((index) => refusals[index]?.isFinal === false);
      }
      return refusals;
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
