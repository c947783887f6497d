import type { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { inPool } from "../../base/process/pool.ts";
import { eventWrapperBytes, serviceSizes } from "../../base/sizes/service-sizes.ts";
import type { EventBus, Refusal } from "../../parts/messages/outbox.ts";
import { isInstrumented, type MessagingSdk } from "../clients/client-options.ts";
import { callFailure, entryRefusal } from "./refusal.ts";

const maxEntries = 10;
const callsAtOnce = 4;
const { maxBytes } = serviceSizes.eventBridgeEntry;
const maxAttempts = 4;
/** Consecutive failures, not caused by an entry, after which the bus is treated as down. */
const maxFailedCalls = 3;

type Entry = Parameters<EventBus["put"]>[0][number];

/**
 * Sends up to ten events per call, four calls at a time, and retries failed entries. If a whole call
 * fails and one entry may be the cause, sends the entries one by one.
 */
export function eventBridgeBus(
  { PutEventsCommand }: Pick<MessagingSdk, "PutEventsCommand">,
  client: EventBridgeClient,
  {
    busName,
    source,
    pause,
  }: {
    readonly busName: string;
    /** `source` of every event, which rules match. */
    readonly source: string;
    /** Waits before a retry. The first has number 1. */
    readonly pause: (attempt: number) => Promise<void>;
  },
): EventBus {
  const send = async (batch: readonly Entry[]): Promise<readonly (Refusal | undefined)[]> => {
    const asked = batch.map(({ type: DetailType, text: Detail }) => ({
      EventBusName: busName,
      Source: source,
      DetailType,
      Detail,
    }));
    const { Entries = [] } = await client.send(new PutEventsCommand({ Entries: asked }));
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
          const answers = await send(indexes.map((index) => events[index] as Entry)); // safe: `indexes` has only indexes of `events`
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
      for (let attempt = 0; left.length > 0 && attempt < maxAttempts; attempt += 1) {
        if (down !== undefined) break;
        if (attempt > 0) await pause(attempt);
        // The first call runs by itself, so that an outage costs one call.
        const all = batches(events, left);
        for (const first of all.splice(0, 1)) await putThem(first);
        await inPool(all, callsAtOnce, putThem);
        left = left.filter((index) => refusals[index]?.isFinal === false);
      }
      return refusals;
    },
  };
}

function batches(events: readonly Entry[], indexes: readonly number[]): number[][] {
  const all: number[][] = [];
  let bytes = 0;
  for (const index of indexes) {
    const size = Buffer.byteLength((events[index] as Entry).text) + eventWrapperBytes; // safe: `indexes` has only indexes of `events`
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
