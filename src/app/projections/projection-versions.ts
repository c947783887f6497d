import { randomUUID } from "node:crypto";
import type { Lazy } from "../../base/process/lazy.ts";
import {
  behind,
  endOfTime,
  type KeptEventStore,
  type KeptRow,
  type KeptStream,
  keptRows,
} from "../../parts/messages/kept-events.ts";
import { timeText } from "../../parts/messages/outbox-store.ts";
import type { ProjectionDeclaration } from "../handlers/message-handlers.ts";
import type { ProjectionStore, TenantVersions } from "./projection-store.ts";
import { effectiveVersion, ownVersion } from "./projections.ts";

/** Allowance for clock skew between processes, in milliseconds. */
const marginMs = 60_000;

/** Yields a tenant's events of all types up to the rebuild's start, sorted by time. */
export async function* inOrder(
  kept: KeptEventStore,
  tenantId: string | undefined,
  types: readonly string[],
  {
    startedMs,
    after,
    nowMs,
    signal,
  }: { startedMs: number; after: string; nowMs: number; signal: AbortSignal | undefined },
) {
  const from = after === "" ? timeText(0) : behind(after);
  const untilMs = Math.min(startedMs + marginMs, endOfTime);
  const streams = types.map((type) => ({
    type,
    rows: keptRows(kept, { tenantId, type }, { from, untilMs, nowMs, signal }),
  }));
  const heads = new Map<(typeof streams)[number], KeptRow>();
  const advance = async (stream: (typeof streams)[number]) => {
    const next = await stream.rows.next();
    if (next.done === true) heads.delete(stream);
    else heads.set(stream, next.value);
  };
  for (const stream of streams) await advance(stream);
  while (heads.size > 0) {
    const [stream, row] = [...heads].reduce((one, other) =>
      other[1].sort < one[1].sort ? other : one,
    );
    yield { type: stream.type, row };
    await advance(stream);
  }
}

interface Switching {
  readonly store: ProjectionStore;
  readonly projection: ProjectionDeclaration;
  /** Tenants with events that could not be counted, except `""`, which does not stand for a tenant. */
  readonly lost: readonly string[];
  readonly whole: readonly string[];
}

/**
 * Activates the declared version in one conditional write; tenants with events that could not be
 * counted keep their version. @returns whether another version was active.
 */
export async function switchTo(
  switching: Switching,
  tenantId: string | undefined,
  before: TenantVersions,
) {
  const { store, projection, lost, whole } = switching;
  const { name, version } = projection;
  if (effectiveVersion(before)?.version === version) {
    // Switches tenants that have kept another version since an earlier rebuild.
    if (tenantId === undefined)
      for (const tenant of whole) if (tenant !== "") await follow(switching, tenant);
    return false;
  }
  // Before the first activation, all tenants read the declared version, so all switch.
  if (before.all === undefined && tenantId !== undefined)
    return switchTo(switching, undefined, before);
  const revision = randomUUID();
  if (tenantId === undefined && before.all !== undefined) {
    // These pins name both revisions: no reader sees an incomplete version, whether the switch
    // succeeds or fails. Releases that do not know `overBefore` read them after the switch.
    const overBefore = before.all.revision;
    for (const tenant of lost) {
      const found = await store.active(name, tenant);
      // Pins of another rebuild, which has switched, stay: the switch below fails.
      if (found.all?.revision !== overBefore) break;
      const kept = ownVersion(found) ?? found.all;
      const pin = { version: kept.version, revision: randomUUID(), over: revision, overBefore };
      if (!(await store.activate(name, tenant, pin, found.own))) throw switchedMeanwhile(name);
    }
  }
  const over = tenantId === undefined ? {} : { over: before.all?.revision };
  const next = { version, revision, ...over };
  if (await store.activate(name, tenantId, next, tenantId === undefined ? before.all : before.own))
    return true;
  const now = effectiveVersion(await store.active(name, tenantId))?.version;
  if (now === version) return false;
  throw switchedMeanwhile(name, now);
}

async function follow({ store, projection: { name, version } }: Switching, tenantId: string) {
  const active = await store.active(name, tenantId);
  if (effectiveVersion(active)?.version === version) return;
  const next = { version, revision: randomUUID(), over: active.all?.revision };
  if (!(await store.activate(name, tenantId, next, active.own))) throw switchedMeanwhile(name);
}

function switchedMeanwhile(name: string, version?: number) {
  const what = version === undefined ? "another version" : `version ${version}`;
  return new Error(
    `the projection ${name} was switched to ${what} in the meantime; rebuild it again`,
  );
}

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
