import { CommitConditionError } from "../../base/errors/commit-condition-error.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { ActiveVersions, AmbientStore } from "../../base/request/ambient.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import type { ActiveVersion, ProjectionStore } from "../../parts/messages/projection-store.ts";
import type { PipelineContext } from "../features/pipeline-context.ts";
import type {
  ProjectionContext,
  ProjectionDeclaration,
} from "../features/projection-declaration.ts";

/** The scope that a projection is written in. */
export interface ProjectingScope extends Pick<AmbientStore, "projecting"> {
  readonly log: Logger;
}

/** Writes projections, and knows their versions. */
export interface Projections extends ActiveVersions {
  /** The version that events go into, beside the declared one: the active one. With the first event of all, that is the declared one. */
  written(projection: ProjectionDeclaration, tenantId: string | undefined): Promise<number>;
  /** Writes an event into a version. @returns whether it counts; where it was counted before, nothing is written. */
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
  const held = new Map<
    string,
    { readonly untilMs: number; readonly version: Promise<number | undefined> }
  >();

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

  const written: Projections["written"] = async ({ name, version }, tenantId) => {
    const current = await active(name, tenantId);
    if (current !== undefined) return current;
    // The first event of all says which version is read until a rebuild switches to another.
    held.clear();
    const first = { version, revision: crypto.randomUUID() };
    if (await (await store()).activate(name, undefined, first, undefined)) return version;
    /* v8 ignore next -- the process that was first has noted one, which is never removed */
    return (await read(name, tenantId)) ?? version;
  };

  return {
    version: async (name, tenantId) => {
      const declared = projections.get(name);
      if (declared === undefined)
        throw new Error(`the projection ${name} is declared by no feature of this server`);
      return (await active(name, tenantId)) ?? declared.version;
    },
    written,
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
  /** The version that it goes into. */
  readonly version: number;
  readonly event: SharedEvent;
  readonly keptDays: number;
}

/** Its items and its mark are one commit. @throws what the projection throws, and what its commit does. */
async function project(
  scope: ProjectingScope,
  ctx: PipelineContext,
  store: ProjectionStore,
  work: Projecting,
): Promise<boolean> {
  const { projection, version, event, keptDays } = work;
  const run = projection.on.get(event.type) as NonNullable<ReturnType<typeof projection.on.get>>; // safe: its consumers are of its types
  const { commit: _commit, ...own } = ctx;
  const reads: ProjectionContext = Object.freeze({
    ...own,
    trace: ctx.trace,
    events: ctx.events,
    acrossTenants: ctx.acrossTenants,
  });
  scope.projecting = { name: projection.name, version };
  let items: readonly CommitItem[];
  try {
    const given: unknown = await run(reads, event, { version });
    if (!Array.isArray(given))
      throw new TypeError(
        `the projection ${projection.name} gave ${quoted(given)}; let it return a list of items`,
      );
    items = given;
  } finally {
    scope.projecting = undefined;
  }
  try {
    // Safe: a mark is one action.
    await ctx.commit(
      [...items, store.mark(projection.name, version, event, keptDays) as CommitItem],
      undefined,
    );
    return true;
  } catch (error) {
    if (error instanceof CommitConditionError && error.index === items.length) return false;
    throw error;
  }
}
