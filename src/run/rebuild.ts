import { randomUUID } from "node:crypto";
import type { EventDeclaration } from "../declare/message-handlers.ts";
import type { ProjectionDeclaration } from "../declare/projection-declaration.ts";
import { objectOf } from "../events/cause.ts";
import { checkPayload } from "../events/check-payload.ts";
import { openEnvelope } from "../events/envelope.ts";
import { behind, endOfTime, type KeptEventStore, type KeptRow, keptRows, timeText } from "../events/kept-events.ts";
import type { FirstEvent, ProjectionStore, RebuildState } from "../events/projection-store.ts";
import { effectiveVersion } from "./projections.ts";
import { run } from "./run.ts";
import type { Runtime } from "./runtime.ts";
import { runInMessageScope } from "./scope.ts";

/** What is rebuilt, and how. */
export interface RebuildOptions {
  readonly projection: ProjectionDeclaration;
  /** Only this tenant, which then has a version of its own. Default: all. */
  readonly tenantId?: string | undefined;
  /** Whether it goes on without the events that have expired. */
  readonly isPartial?: boolean;
  /** Ends it before the next event; the next call goes on from there. */
  readonly signal?: AbortSignal | undefined;
}

/** What a rebuild has done. */
export interface Rebuilt {
  /** How many events it has read, those of earlier calls of the same rebuild included. */
  readonly replayed: number;
  /** Whether another version was active before. */
  readonly hasSwitched: boolean;
}

/** Later events reach the version by themselves; so much later, by the clocks of other processes. */
const marginMs = 60_000;
/** After so many events the place is noted. */
const eventsPerNote = 100;

/**
 * Replays the kept events of a projection, in their order for each tenant, into the declared version, and makes it the active one. Each
 * event counts once, however often it comes: replayed, live, or replayed again by a call that goes on.
 *
 * @throws Error where the oldest events have expired and it is not partial; the signal's reason; what the projection throws.
 */
export async function rebuild(runtime: Runtime, options: RebuildOptions): Promise<Rebuilt> {
  const adapters = await runtime.adapters();
  const [kept, store] = await Promise.all([adapters.keptEvents.open(), adapters.projections.open()]);
  const { projection, tenantId, isPartial = false, signal } = options;
  const { name, version } = projection;
  const types = [...projection.on.keys()];
  signal?.throwIfAborted();
  const before = await store.active(name, tenantId);
  const firsts: FirstEvent[] = [];
  for await (const first of store.firstEvents(types, tenantId)) firsts.push(first);
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
    const range = { startedMs: state.startedMs, after: state.after, nowMs: runtime.clock.now(), signal };
    let unnoted = 0;
    try {
      for await (const { type, row } of inOrder(kept, tenant === "" ? undefined : tenant, types, range)) {
        await replay(runtime, projection, type, row);
        unnoted += 1;
        state = { ...state, after: row.sort, replayed: state.replayed + 1 };
        if (unnoted % eventsPerNote === 0) await store.saveRebuild(name, tenantId, state);
      }
    } finally {
      if (signal?.aborted === true) await store.saveRebuild(name, tenantId, state);
    }
    await store.saveRebuild(name, tenantId, state);
  }
  signal?.throwIfAborted();
  const hasSwitched = await activate(store, projection, tenantId, before);
  await store.endRebuild(name, tenantId);
  return { replayed: state.replayed, hasSwitched };
}

/** @throws Error naming the first that are gone. */
function refuseExpired(name: string, firsts: readonly FirstEvent[], nowMs: number): void {
  const gone = firsts
    .filter(({ keptUntil }) => keptUntil !== undefined && keptUntil * 1_000 <= nowMs)
    .sort((one, other) => tenantKey(one).localeCompare(tenantKey(other)));
  if (gone.length === 0) return;
  const shown = gone
    .slice(0, 3)
    .map(({ type, tenantId }) => `${type} of ${tenantId === undefined ? "no tenant" : JSON.stringify(tenantId)}`);
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
  range: { readonly startedMs: number; readonly after: string; readonly nowMs: number; readonly signal: AbortSignal | undefined },
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
    const [stream, row] = [...heads].reduce((one, other) => (other[1].sort < one[1].sort ? other : one));
    yield { type: stream.type, row };
    await advance(stream);
  }
}

/** Nobody reads it. */
const done = () => ({ status: 204, headers: {}, cookies: [], body: undefined });

/** Writes one event into the declared version: a run like a consumer's, without a claim; the mark is what makes it count once. */
async function replay(runtime: Runtime, projection: ProjectionDeclaration, type: string, { text }: KeptRow): Promise<void> {
  const adapters = await runtime.adapters();
  const projections = await runtime.projections.open();
  // Safe: a projection of events that are not declared or not kept fails the boot.
  const { schema, keptDays } = runtime.server.registry.events.get(type) as EventDeclaration & { readonly keptDays: number };
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
    logFields: { origRequestId, eventId, causedBy },
    parent,
  };
  await runInMessageScope(runtime, facts, (scope) =>
    run(scope, adapters, {
      logPrefix: "event",
      claim: undefined,
      cause: { causedBy: eventId, origRequestId, tenantId, userId },
      handle: (ctx) => projections.project(scope, ctx, { projection, versions: [projection.version], event, keptDays }),
      answerOf: done,
      committedAnswer: done,
    }),
  );
}

/** Switches in one conditional write. @returns whether another version was active. */
async function activate(
  store: ProjectionStore,
  { name, version }: Pick<ProjectionDeclaration, "name" | "version">,
  tenantId: string | undefined,
  before: Awaited<ReturnType<ProjectionStore["active"]>>,
): Promise<boolean> {
  if (effectiveVersion(before)?.version === version) return false;
  const next = { version, revision: randomUUID(), ...(tenantId === undefined ? {} : { over: before.all?.revision }) };
  // Where nothing was ever set all read what is declared, so that it is the version of all.
  if (before.all === undefined && tenantId !== undefined) return activate(store, { name, version }, undefined, before);
  if (await store.activate(name, tenantId, next, tenantId === undefined ? before.all : before.own)) return true;
  const now = effectiveVersion(await store.active(name, tenantId))?.version;
  if (now === version) return false;
  throw new Error(`the projection ${name} was switched to version ${now} meanwhile; rebuild it again`);
}
