import type { Lazy } from "../../base/process/lazy.ts";
import {
  type KeptEventStore,
  type KeptRow,
  type KeptStream,
  keptRows,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";
import type { ProjectionDeclaration } from "../handlers/message-handlers.ts";
import type { ProjectionStore } from "./projection-store.ts";
import { effectiveVersion } from "./projections.ts";

/** Look-back spans, in milliseconds. Usually the first is enough; no message waits two weeks. */
const spansMs = [60_000, 600_000, 3_600_000, 86_400_000, 14 * 86_400_000];
/** After so many counted events in a row, all older events count as counted. */
const enough = 10;

/**
 * Time, in milliseconds since the epoch, of the oldest event that the active version has not
 * counted. Goes from the newest backwards, so that an old dead letter is not reported.
 */
export async function oldestUncounted(
  adapters: {
    readonly keptEvents: Lazy<KeptEventStore>;
    readonly projections: Lazy<ProjectionStore>;
  },
  { name, version, on }: ProjectionDeclaration,
  nowMs: number,
): Promise<number | undefined> {
  const [kept, store] = await Promise.all([
    adapters.keptEvents.open(),
    adapters.projections.open(),
  ]);
  const versions = new Map<string | undefined, number>();
  let oldestMs: number | undefined;
  for await (const stream of store.firstEvents([...on.keys()], undefined)) {
    const { tenantId } = stream;
    const read =
      versions.get(tenantId) ??
      effectiveVersion(await store.active(name, tenantId))?.version ??
      version;
    versions.set(tenantId, read);
    let counted = 0;
    for await (const { sort, atMs } of newestFirst(kept, stream, nowMs)) {
      const eventId = sort.slice(sort.indexOf("#") + 1);
      if (await store.isCounted(name, read, { tenantId, eventId })) counted += 1;
      else {
        counted = 0;
        oldestMs = Math.min(oldestMs ?? atMs, atMs);
      }
      if (counted === enough) break;
    }
  }
  return oldestMs;
}

async function* newestFirst(kept: KeptEventStore, stream: KeptStream, nowMs: number) {
  let untilMs = nowMs + 60_000; // clock skew of other processes
  for (const spanMs of spansMs) {
    const fromMs = Math.max(0, nowMs - spanMs);
    const rows: KeptRow[] = [];
    for await (const row of keptRows(kept, stream, { from: timeText(fromMs), untilMs, nowMs }))
      rows.push(row);
    yield* rows.reverse();
    untilMs = fromMs;
  }
}
