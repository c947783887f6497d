import { anonymous } from "../../base/identity/access.ts";
import { inPool } from "../../base/process/pool.ts";
import { asksSystem, checkPayload, objectOf, openEnvelope } from "../../parts/messages/envelope.ts";
import type { KeptRow } from "../../parts/messages/kept-events.ts";
import type { EventDeclaration, ProjectionDeclaration } from "../handlers/message-handlers.ts";
import type { FirstEvent, RebuildState } from "../projections/projection-store.ts";
import { inOrder, switchTo } from "../projections/projection-versions.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { runInMessageScope } from "../runtime/scope.ts";
import { projectAlone } from "./project-event.ts";
import { createPosition, type TenantPlace } from "./rebuild-position.ts";

export interface RebuildOptions {
  readonly projection: ProjectionDeclaration;
  /** The only tenant to rebuild, which then has its own active version. Default: all tenants. */
  readonly tenantId?: string | undefined;
  /** Whether to rebuild even if the oldest events have expired. Default `false`. */
  readonly isPartial?: boolean;
  /** Signal that stops the rebuild before the next event. The next call resumes there. */
  readonly signal?: AbortSignal | undefined;
  /** Called for each event that cannot be counted. */
  readonly tell?: (event: UncountedEvent) => void;
  /** Called while the table is searched for tenants, with the number of rows read so far. */
  readonly onPage?: ((scanned: number) => void) | undefined;
  /** Called before the first event, after each counted event, and after each tenant. */
  readonly onProgress?: ((progress: RebuildProgress) => void) | undefined;
}

export interface RebuildProgress {
  /** Number of events replayed, including by earlier calls of the same rebuild. */
  readonly replayed: number;
  /** Number of tenants whose events are all replayed. Events without a tenant are one of them. */
  readonly ended: number;
  readonly tenants: number;
}

/**
 * Event that cannot be written into the version ("counted"): its payload no longer matches its
 * schema, the projection throws, or DynamoDB rejects its items.
 */
export interface UncountedEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  readonly eventId: string;
  readonly reason: string;
}

export interface Rebuilt {
  /** Number of events replayed, including by earlier calls of the same rebuild. */
  readonly replayed: number;
  /** Whether another version was active before. */
  readonly hasSwitched: boolean;
  /**
   * Tenants that keep their active version, because some of their events could not be counted. `""`
   * stands for events without a tenant, which have the version of all tenants, even if it misses
   * some of them. Sorted. Absent if all events were counted.
   */
  readonly lost?: readonly string[];
}

/** A tenant's events are replayed one after another. */
const tenantsAtOnce = 8;
/** Number of replayed events after which the position is saved. */
const eventsPerNote = 100;
/** Above this number of affected tenants, the cause is not their data, so the rebuild fails. */
const mostLost = 1_000;

/**
 * Replays the kept events of a projection into the declared version, in order for each tenant, and
 * activates that version. Each event is counted once, whether it is replayed, delivered live, or
 * replayed again by a call that resumes.
 *
 * An event that cannot be counted affects only its own tenant, which keeps its active version until
 * a later call has counted all of its events. The rebuild replays all other events and switches the
 * other tenants. If every tenant is affected, no tenant switches.
 *
 * @throws Error if the oldest events have expired and the rebuild is not partial, or if the tenant
 * has no events. The signal's reason. Any error of the store.
 */
export async function rebuild(runtime: Runtime, options: RebuildOptions): Promise<Rebuilt> {
  const adapters = await runtime.adapters.open();
  const [kept, store] = await Promise.all([
    adapters.keptEvents.open(),
    adapters.projections.open(),
  ]);
  const { projection, tenantId, isPartial = false, signal, tell, onPage } = options;
  const { name, version } = projection;
  const types = [...projection.on.keys()];
  signal?.throwIfAborted();
  const before = await store.active(name, tenantId);
  const firsts: FirstEvent[] = [];
  for await (const first of store.firstEvents(types, tenantId, onPage)) firsts.push(first);
  if (tenantId !== undefined && firsts.length === 0)
    throw new Error(
      `no event of ${name} is kept for the tenant ${JSON.stringify(tenantId)}; look whether that is its ID`,
    );
  const begun = await store.rebuild(name, tenantId);
  let state: RebuildState;
  if (begun?.version === version) state = begun;
  else {
    if (!isPartial) refuseExpired(name, firsts, runtime.clock.now());
    state = { version, startedMs: runtime.clock.now(), tenant: "", after: "", replayed: 0 };
    await store.saveRebuild(name, tenantId, state);
  }
  const tenants = [...new Set(firsts.map(tenantKey))].sort();
  const position = createPosition(
    state,
    tenants.filter((each) => each >= state.tenant),
    (reached) => store.saveRebuild(name, tenantId, reached),
  );
  const show = () => {
    const { replayed, left } = position.counts();
    const ended = tenants.length - left;
    options.onProgress?.({ replayed, ended, tenants: tenants.length });
  };
  show();
  const failed = new AbortController();
  const stop = signal === undefined ? failed.signal : AbortSignal.any([signal, failed.signal]);
  const { startedMs } = state;
  const replayTenant = async ({ tenant, after }: TenantPlace): Promise<void> => {
    stop.throwIfAborted();
    const of = tenant === "" ? undefined : tenant;
    const range = { startedMs, after, nowMs: runtime.clock.now(), signal: stop };
    let unnoted = 0;
    for await (const { type, row } of inOrder(kept, of, types, range)) {
      const failure = await replay(runtime, projection, type, row).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      unnoted += 1;
      if (failure === undefined) {
        position.reach(tenant, row.sort);
        show();
        if (unnoted % eventsPerNote === 0) await position.save();
        continue;
      }
      // Before `lose`, so that no position is saved past the event and the next call fails too.
      if (!position.lost.has(tenant) && position.lost.size >= mostLost)
        throw tooManyLost(name, failure.error);
      // Before it is saved, so that no call leaves it unnamed.
      tell?.(uncounted(tenant, type, row, failure.error));
      // If saving fails too, the cause is the store, and the next call retries the event.
      await position.lose(tenant, row.sort).catch(() => {
        throw failure.error;
      });
    }
    position.end(tenant);
    show();
    await position.save();
  };
  // The first error stops all of them, and no replay continues after this call has rejected.
  await inPool(position.places, tenantsAtOnce, (place) =>
    replayTenant(place).catch((error: unknown) => failed.abort(error)),
  );
  if (signal?.aborted === true) await position.save();
  stop.throwIfAborted();
  const { replayed, lost: found = [] } = position.reached();
  const lost = found.toSorted(); // found in any order, since several tenants are replayed at a time
  const isWhole = (tenant: string) => !lost.includes(tenant);
  const switching = {
    store,
    projection,
    lost: lost.filter((tenant) => tenant !== ""),
    whole: tenants.filter(isWhole),
  };
  const isNobodyWhole = lost.length > 0 && switching.whole.length === 0;
  const hasSwitched = isNobodyWhole ? false : await switchTo(switching, tenantId, before);
  await store.endRebuild(name, tenantId);
  return { replayed, hasSwitched, ...(lost.length === 0 ? {} : { lost }) };
}

function tooManyLost(name: string, cause: unknown): Error {
  const what = `events of more than ${mostLost} tenants cannot be counted by ${name}, so that it has not switched`;
  return new Error(`${what}: ${reasonOf(cause)}`, { cause });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Does not parse the row, which may be invalid. */
function uncounted(
  tenant: string,
  type: string,
  { sort }: KeptRow,
  error: unknown,
): UncountedEvent {
  const eventId = sort.slice(sort.indexOf("#") + 1);
  return { tenantId: tenant === "" ? undefined : tenant, type, eventId, reason: reasonOf(error) };
}

/** @throws Error that names up to three types whose first event has expired. */
function refuseExpired(name: string, firsts: readonly FirstEvent[], nowMs: number): void {
  const gone = firsts
    .filter(({ keptUntil }) => keptUntil !== undefined && keptUntil * 1_000 <= nowMs)
    .sort((one, other) => tenantKey(one).localeCompare(tenantKey(other)));
  if (gone.length === 0) return;
  const shown = gone
    .slice(0, 3)
    .map(
      ({ type, tenantId }) =>
        `${type} of ${tenantId === undefined ? "no tenant" : JSON.stringify(tenantId)}`,
    );
  const more = gone.length > shown.length ? ` and ${gone.length - shown.length} more` : "";
  throw new Error(
    `the projection ${name} cannot be rebuilt completely: the oldest events have expired (${shown.join(", ")}${more}); pass --partial to build it from the remaining events`,
  );
}

/** Events without a tenant sort first. */
function tenantKey({ tenantId = "" }: FirstEvent): string {
  return tenantId;
}

async function replay(
  runtime: Runtime,
  projection: ProjectionDeclaration,
  type: string,
  { text, expiresAt }: KeptRow,
): Promise<void> {
  const adapters = await runtime.adapters.open();
  // The cast is safe: boot rejects a projection of events that are not declared or not kept.
  const { schema, keptDays: declaredDays } = runtime.server.registry.events.get(
    type,
  ) as EventDeclaration & {
    readonly keptDays: number;
  };
  // The event may have been published when its declaration had a longer retention.
  const keptDays = Math.max(declaredDays, daysUntil(expiresAt, runtime.clock.now()));
  const { event: read, trace: parent } = openEnvelope(objectOf(text, "the kept event"));
  const { eventId, tenantId, userId, origRequestId, causedBy } = read;
  const refuse = (problems: string) =>
    new Error(`the payload of ${type} ${eventId} does not fit its schema any more (${problems})`);
  const event = { ...read, payload: await checkPayload(schema, read.payload, refuse) };
  const facts = {
    requestId: origRequestId,
    user: Object.freeze({ ...anonymous, id: userId, tenantId }),
    handler: `${projection.name}:${type}`,
    deadlineMs: undefined,
    isSystem: asksSystem(read),
    logFields: { origRequestId, eventId, causedBy },
    parent,
  };
  await runInMessageScope(runtime, facts, (scope) =>
    projectAlone(scope, adapters, { projection, version: projection.version, event, keptDays }),
  );
}

const dayMs = 86_400_000;

/** @param expiresAt - in epoch seconds; `undefined` for an event that is kept forever. */
function daysUntil(expiresAt: number | undefined, nowMs: number): number {
  return expiresAt === undefined ? Infinity : Math.ceil((expiresAt * 1_000 - nowMs) / dayMs);
}
