import { randomUUID } from "node:crypto";
import { asksSystem, objectOf } from "../../parts/messages/cause.ts";
import { checkPayload } from "../../parts/messages/check-payload.ts";
import { openEnvelope } from "../../parts/messages/envelope.ts";
import {
  behind,
  endOfTime,
  type KeptEventStore,
  type KeptRow,
  keptRows,
  timeText,
} from "../../parts/messages/kept-events.ts";
import type {
  FirstEvent,
  ProjectionStore,
  RebuildState,
} from "../../parts/messages/projection-store.ts";
import type { EventDeclaration } from "../features/message-handlers.ts";
import type { ProjectionDeclaration } from "../features/projection-declaration.ts";
import { effectiveVersion } from "../runtime/projections.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { runInMessageScope } from "../runtime/scope.ts";
import { projectAlone } from "./project-event.ts";

/** What is rebuilt, and how. */
export interface RebuildOptions {
  readonly projection: ProjectionDeclaration;
  /** Only this tenant, which then has a version of its own. Default: all. */
  readonly tenantId?: string | undefined;
  /** Whether it goes on without the events that have expired. */
  readonly isPartial?: boolean;
  /** Ends it before the next event; the next call goes on from there. */
  readonly signal?: AbortSignal | undefined;
  /** Is told of each event that cannot be counted. Default: nobody is. */
  readonly tell?: (event: UncountedEvent) => void;
}

/** An event that cannot be counted: its payload does not fit any more, the projection throws, or DynamoDB refuses its items. */
export interface UncountedEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  readonly eventId: string;
  readonly reason: string;
}

/** What a rebuild has done. */
export interface Rebuilt {
  /** How many events it has read, those of earlier calls of the same rebuild included. */
  readonly replayed: number;
  /** Whether another version was active before. */
  readonly hasSwitched: boolean;
  /** Tenants with events that could not be counted, `""` for none. They keep the version that they read. Absent where all were. */
  readonly lost?: readonly string[];
}

/** Later events reach the version by themselves; so much later, by the clocks of other processes. */
const marginMs = 60_000;
/** After so many events the place is noted. */
const eventsPerNote = 100;
/** Where events of more tenants cannot be counted, it is not one tenant's data that is to blame. */
const mostLost = 1_000;

/**
 * Replays the kept events of a projection, in their order for each tenant, into the declared version, and makes it the active one. Each
 * event counts once, however often it comes: replayed, live, or replayed again by a call that goes on.
 *
 * What cannot be counted of one tenant stops no other: the rest is replayed and the others switch, while that tenant keeps the version
 * that it reads until a later call has counted all of its events. Where no tenant is whole nobody switches.
 *
 * @throws Error where the oldest events have expired and it is not partial, or the tenant has none; the signal's reason; what the
 *   store throws.
 */
export async function rebuild(runtime: Runtime, options: RebuildOptions): Promise<Rebuilt> {
  const adapters = await runtime.adapters();
  const [kept, store] = await Promise.all([
    adapters.keptEvents.open(),
    adapters.projections.open(),
  ]);
  const { projection, tenantId, isPartial = false, signal, tell } = options;
  const { name, version } = projection;
  const types = [...projection.on.keys()];
  signal?.throwIfAborted();
  const before = await store.active(name, tenantId);
  const firsts: FirstEvent[] = [];
  for await (const first of store.firstEvents(types, tenantId)) firsts.push(first);
  if (tenantId !== undefined && firsts.length === 0) {
    throw new Error(
      `no event of ${name} is kept for the tenant ${JSON.stringify(tenantId)}; look whether that is its ID`,
    );
  }
  const begun = await store.rebuild(name, tenantId);
  let state: RebuildState;
  if (begun?.version === version) state = begun;
  else {
    if (!isPartial) refuseExpired(name, firsts, runtime.clock.now());
    state = { version, startedMs: runtime.clock.now(), tenant: "", after: "", replayed: 0 };
    await store.saveRebuild(name, tenantId, state);
  }
  const tenants = [...new Set(firsts.map(tenantKey))].sort();
  for (const tenant of tenants.filter((each) => each >= state.tenant)) {
    if (tenant !== state.tenant) state = { ...state, tenant, after: "" };
    const range = {
      startedMs: state.startedMs,
      after: state.after,
      nowMs: runtime.clock.now(),
      signal,
    };
    let unnoted = 0;
    try {
      for await (const { type, row } of inOrder(
        kept,
        tenant === "" ? undefined : tenant,
        types,
        range,
      )) {
        const failure = await failureOf(() => replay(runtime, projection, type, row));
        unnoted += 1;
        state = { ...state, after: row.sort, replayed: state.replayed + 1 };
        if (failure !== undefined) {
          const lost = [...new Set([...(state.lost ?? []), tenant])];
          state = { ...state, replayed: state.replayed - 1, lost };
          if (lost.length > mostLost) throw tooManyLost(name, failure.error);
          // Where the store does not take this either, it is not the event that is to blame: the next call tries it again.
          await store.saveRebuild(name, tenantId, state).catch(() => {
            throw failure.error;
          });
          tell?.(uncounted(tenant, type, row, failure.error));
        } else if (unnoted % eventsPerNote === 0) await store.saveRebuild(name, tenantId, state);
      }
    } finally {
      if (signal?.aborted === true) await store.saveRebuild(name, tenantId, state);
    }
    await store.saveRebuild(name, tenantId, state);
  }
  signal?.throwIfAborted();
  const { replayed, lost = [] } = state;
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

/** What a call has thrown; `undefined` where it has not. */
async function failureOf(
  call: () => Promise<void>,
): Promise<{ readonly error: unknown } | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return { error };
  }
}

function tooManyLost(name: string, cause: unknown): Error {
  const what = `events of more than ${mostLost} tenants cannot be counted by ${name}, so that it has not switched`;
  return new Error(`${what}: ${reasonOf(cause)}`, { cause });
}

/** A projection may throw anything. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Names an event that may be none. */
function uncounted(
  tenant: string,
  type: string,
  { sort }: KeptRow,
  error: unknown,
): UncountedEvent {
  const eventId = sort.slice(sort.indexOf("#") + 1);
  return { tenantId: tenant === "" ? undefined : tenant, type, eventId, reason: reasonOf(error) };
}

/** @throws Error naming the first that are gone. */
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
    `the projection ${name} cannot be made as it was: the oldest events have expired (${shown.join(", ")}${more}); pass --partial to make it of those that are left`,
  );
}

/** What has no tenant comes first. */
function tenantKey({ tenantId = "" }: FirstEvent): string {
  return tenantId;
}

interface Replayed {
  readonly type: string;
  readonly row: KeptRow;
}

/** The events of a tenant, of all types in one order. */
async function* inOrder(
  kept: KeptEventStore,
  tenantId: string | undefined,
  types: readonly string[],
  range: {
    readonly startedMs: number;
    readonly after: string;
    readonly nowMs: number;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<Replayed> {
  const { startedMs, after, nowMs, signal } = range;
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

/** Writes one event into the declared version. */
async function replay(
  runtime: Runtime,
  projection: ProjectionDeclaration,
  type: string,
  { text }: KeptRow,
): Promise<void> {
  const adapters = await runtime.adapters();
  // Safe: a projection of events that are not declared or not kept fails the boot.
  const { schema, keptDays } = runtime.server.registry.events.get(type) as EventDeclaration & {
    readonly keptDays: number;
  };
  const { event: read, trace: parent } = openEnvelope(objectOf(text, "the kept event"));
  const { eventId, tenantId, userId, origRequestId, causedBy } = read;
  const refuse = (problems: string) =>
    new Error(`the payload of ${type} ${eventId} does not fit its schema any more (${problems})`);
  const event = { ...read, payload: await checkPayload(schema, read.payload, refuse) };
  const facts = {
    requestId: origRequestId,
    user: Object.freeze({ id: userId, tenantId, roles: Object.freeze([]) }),
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

interface Switching {
  readonly store: ProjectionStore;
  readonly projection: Pick<ProjectionDeclaration, "name" | "version">;
  /** Tenants with events that could not be counted, and those without any. */
  readonly lost: readonly string[];
  readonly whole: readonly string[];
}

type Active = Awaited<ReturnType<ProjectionStore["active"]>>;

/** Switches in one conditional write, but for tenants that keep what they read. @returns whether another version was active. */
async function switchTo(
  switching: Switching,
  tenantId: string | undefined,
  before: Active,
): Promise<boolean> {
  const { store, projection, lost, whole } = switching;
  const { name, version } = projection;
  if (effectiveVersion(before)?.version === version) {
    // A tenant that has kept another version since an earlier rebuild follows now.
    if (tenantId === undefined)
      for (const tenant of whole) if (tenant !== "") await follow(switching, tenant);
    return false;
  }
  // Where nothing was ever set all read what is declared, so that it is the version of all.
  if (before.all === undefined && tenantId !== undefined)
    return switchTo(switching, undefined, before);
  const revision = randomUUID();
  if (tenantId === undefined && before.all !== undefined) {
    // First, so that no reader meets a version that is not whole: what is kept counts from the switch on.
    for (const tenant of lost) {
      const { own } = await store.active(name, tenant);
      const kept = own?.over === before.all.revision ? own : before.all;
      const next = { version: kept.version, revision: randomUUID(), over: revision };
      if (!(await store.activate(name, tenant, next, own)))
        throw switchedMeanwhile(name, undefined);
    }
  }
  const next = {
    version,
    revision,
    ...(tenantId === undefined ? {} : { over: before.all?.revision }),
  };
  if (await store.activate(name, tenantId, next, tenantId === undefined ? before.all : before.own))
    return true;
  const now = effectiveVersion(await store.active(name, tenantId))?.version;
  if (now === version) return false;
  throw switchedMeanwhile(name, now);
}

async function follow(
  { store, projection: { name, version } }: Switching,
  tenantId: string,
): Promise<void> {
  const active = await store.active(name, tenantId);
  if (effectiveVersion(active)?.version === version) return;
  const next = { version, revision: randomUUID(), over: active.all?.revision };
  if (!(await store.activate(name, tenantId, next, active.own)))
    throw switchedMeanwhile(name, undefined);
}

function switchedMeanwhile(name: string, version: number | undefined): Error {
  const what = version === undefined ? "another version" : `version ${version}`;
  return new Error(`the projection ${name} was switched to ${what} meanwhile; rebuild it again`);
}
