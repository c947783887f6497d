import {
  type KeptRow,
  type KeptStream,
  keptRows,
  timeText,
} from "../../parts/messages/kept-events.ts";
import type { ProjectionDeclaration } from "../features/projection-declaration.ts";
import type { Adapters } from "../runtime/adapters.ts";
import { effectiveVersion } from "../runtime/projections.ts";

/** How far back events are looked at that may not be counted yet, in milliseconds: mostly the first of these is enough. */
const spansMs = [60_000, 600_000, 3_600_000, 86_400_000, 14 * 86_400_000] as const;
/** After so many counted events in a row, from the newest on, those before are taken to be counted. */
const enough = 10;

/**
 * When the oldest event was published that waits to be counted in the version that is read, in milliseconds since the epoch; `undefined`
 * where none does. Looks from the newest event of each tenant and type backwards, so that a dead letter far behind is none of them.
 */
export async function oldestUncounted(
  adapters: Adapters,
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

/** Kept events, the newest first, of the last two weeks: no message waits for longer. */
async function* newestFirst(
  kept: Parameters<typeof keptRows>[0],
  stream: KeptStream,
  nowMs: number,
): AsyncGenerator<KeptRow> {
  let untilMs = nowMs + 60_000; // clocks of other processes
  for (const spanMs of spansMs) {
    const fromMs = Math.max(0, nowMs - spanMs);
    const rows: KeptRow[] = [];
    for await (const row of keptRows(kept, stream, { from: timeText(fromMs), untilMs, nowMs }))
      rows.push(row);
    yield* rows.reverse();
    untilMs = fromMs;
  }
}
