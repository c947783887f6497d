import type { ActiveVersions, AmbientStore } from "../context/ambient.ts";
import type { CommitItem } from "../context/database.ts";
import type { PipelineContext } from "../declare/pipeline-context.ts";
import type { ProjectionContext, ProjectionDeclaration } from "../declare/projection-declaration.ts";
import { CommitConditionError } from "../errors/commit-condition-error.ts";
import { quoted } from "../errors/quoted.ts";
import type { SharedEvent } from "../events/envelope.ts";
import type { ActiveVersion, ProjectionStore } from "../events/projection-store.ts";
import type { Logger } from "../log/logger.ts";
import type { Clock } from "../process/clock.ts";

/** The scope that a projection is written in. */
export interface ProjectingScope extends Pick<AmbientStore, "projecting"> {
  readonly log: Logger;
}

/** Writes projections, and knows their versions. */
export interface Projections extends ActiveVersions {
  /** Writes an event into the declared version, and into the active one where that is another. */
  consume(scope: ProjectingScope, ctx: PipelineContext, work: Omit<Projecting, "versions">): Promise<void>;
  /** Writes an event into some versions. @returns whether it counts; where it was counted before, nothing is written. */
  project(scope: ProjectingScope, ctx: PipelineContext, work: Projecting): Promise<boolean>;
}

/** What {@link Projections} work with. */
export interface ProjectionsOptions {
  readonly projections: ReadonlyMap<string, ProjectionDeclaration>;
  readonly store: () => Promise<ProjectionStore>;
  readonly clock: Clock;
}

/** How long a version is taken for active, in milliseconds: until then a switch may not be noticed. */
const heldMs = 5_000;
/** How many versions a process remembers. */
const mostHeld = 10_000;

/** Creates the {@link Projections} of one runtime. */
export function createProjections({ projections, store, clock }: ProjectionsOptions): Projections {
  const held = new Map<string, { readonly untilMs: number; readonly version: Promise<number | undefined> }>();

  const read = async (name: string, tenantId: string | undefined) =>
    effectiveVersion(await (await store()).active(name, tenantId))?.version;

  /** The active version; `undefined` where none was ever set. */
  const active = (name: string, tenantId: string | undefined): Promise<number | undefined> => {
    const key = JSON.stringify([name, tenantId]);
    const known = held.get(key);
    if (known !== undefined && clock.now() < known.untilMs) return known.version;
    const version = read(name, tenantId);
    if (held.size >= mostHeld) held.clear();
    held.set(key, { untilMs: clock.now() + heldMs, version });
    version.catch(() => held.delete(key));
    return version;
  };

  /** The versions that an event goes into. */
  const written = async ({ name, version }: ProjectionDeclaration, tenantId: string | undefined): Promise<readonly number[]> => {
    const current = await active(name, tenantId);
    if (current === version) return [version];
    if (current !== undefined) return [current, version];
    // The first event of all says which version is read until a rebuild switches to another.
    held.clear();
    const first = { version, revision: crypto.randomUUID() };
    if (await (await store()).activate(name, undefined, first, undefined)) return [version];
    return [...new Set([await read(name, tenantId), version])].filter((each) => each !== undefined);
  };

  return {
    version: async (name, tenantId) => {
      const declared = projections.get(name);
      if (declared === undefined) throw new Error(`the projection ${name} is declared by no feature of this server`);
      return (await active(name, tenantId)) ?? declared.version;
    },
    consume: async (scope, ctx, work) => {
      const versions = await written(work.projection, work.event.tenantId);
      if (await project(scope, ctx, await store(), { ...work, versions })) return;
      scope.log.debug("projection.counted_before", { projection: work.projection.name });
    },
    project: async (scope, ctx, work) => project(scope, ctx, await store(), work),
  };
}

/** What a tenant reads: its own version as long as all others have what they had when it was made. */
export function effectiveVersion({
  all,
  own,
}: {
  readonly all?: ActiveVersion;
  readonly own?: ActiveVersion;
}): ActiveVersion | undefined {
  return own !== undefined && own.over === all?.revision ? own : all;
}

/** An event on its way into a projection. */
export interface Projecting {
  readonly projection: ProjectionDeclaration;
  /** The versions that it goes into. */
  readonly versions: readonly number[];
  readonly event: SharedEvent;
  readonly keptDays: number;
}

/** Its items and its marks are one commit. @throws what the projection throws, and what its commit does. */
async function project(scope: ProjectingScope, ctx: PipelineContext, store: ProjectionStore, work: Projecting): Promise<boolean> {
  const { projection, event, keptDays } = work;
  const run = projection.on.get(event.type) as NonNullable<ReturnType<typeof projection.on.get>>; // safe: its consumers are of its types
  const { commit: _commit, ...own } = ctx;
  const reads: ProjectionContext = Object.freeze({
    ...own,
    trace: ctx.trace,
    events: ctx.events,
    acrossTenants: ctx.acrossTenants,
  });
  const items = new Map<number, readonly CommitItem[]>();
  for (const version of work.versions) {
    scope.projecting = { name: projection.name, version };
    try {
      const given = await run(reads, event, { version });
      if (!Array.isArray(given))
        throw new TypeError(`the projection ${projection.name} gave ${quoted(given)}; let it return a list of items`);
      items.set(version, given);
    } finally {
      scope.projecting = undefined;
    }
  }
  while (items.size > 0) {
    const versions = [...items.keys()];
    const all = [...items.values()].flat();
    // Safe: a mark is one action.
    const marks = versions.map((version) => store.mark(projection.name, version, event, keptDays) as CommitItem);
    try {
      await ctx.commit([...all, ...marks], undefined);
      return true;
    } catch (error) {
      const counted = error instanceof CommitConditionError ? versions[error.index - all.length] : undefined;
      if (counted === undefined) throw error;
      items.delete(counted);
    }
  }
  return false;
}
