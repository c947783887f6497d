import { CommitConditionError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Clock } from "../../base/process/clock.ts";
import { Recent } from "../../base/process/recent.ts";
import type { AmbientStore } from "../../base/request/ambient.ts";
import type { CommitItem } from "../../base/types/database.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import { assertCommittable } from "../../parts/once/run-commit.ts";
import type { ProjectionContext, ProjectionDeclaration } from "../handlers/message-handlers.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { ActiveVersion, ProjectionStore, TenantVersions } from "./projection-store.ts";

type ProjectingScope = Pick<AmbientStore, "projecting">;

export type Projections = ReturnType<typeof createProjections>;

/** In milliseconds. A switch may go unnoticed that long. */
const heldMs = 5_000;
const mostHeld = 10_000;

export function createProjections({
  projections,
  store,
  clock,
}: {
  projections: ReadonlyMap<string, ProjectionDeclaration>;
  store: () => Promise<ProjectionStore>;
  clock: Clock;
}) {
  let held = new Recent<Promise<number | undefined>>(mostHeld, heldMs);

  const read = async (name: string, tenantId: string | undefined) =>
    effectiveVersion(await (await store()).active(name, tenantId))?.version;

  const active = (name: string, tenantId: string | undefined): Promise<number | undefined> => {
    const key = JSON.stringify([name, tenantId]);
    const known = held.get(key, clock.now());
    if (known !== undefined) return known;
    const version = read(name, tenantId);
    held.set(key, version, clock.now());
    version.catch(() => held.delete(key));
    return version;
  };

  /**
   * Returns the active version, into which events are written besides the declared version. The
   * first event fixes it until a rebuild switches to another version.
   */
  const written = async (
    { name, version }: ProjectionDeclaration,
    tenantId: string | undefined,
  ) => {
    const current = await active(name, tenantId);
    if (current !== undefined) return current;
    held = new Recent(mostHeld, heldMs);
    const first = { version, revision: crypto.randomUUID() };
    if (await (await store()).activate(name, undefined, first, undefined)) return version;
    /* v8 ignore next -- the first process has stored a version, which is never removed */
    return (await read(name, tenantId)) ?? version;
  };

  return {
    version: async (name: string, tenantId: string | undefined) => {
      const declared = projections.get(name);
      if (declared === undefined)
        throw new Error(`the projection ${name} is declared by no feature of this server`);
      return (await active(name, tenantId)) ?? declared.version;
    },
    written,
    /** Returns `false` if that version has already counted the event. */
    project: async (scope: ProjectingScope, ctx: PipelineContext, work: Projecting) =>
      project(scope, ctx, await store(), work),
  };
}

export function effectiveVersion(versions: TenantVersions): ActiveVersion | undefined {
  return ownVersion(versions) ?? versions.all;
}

/** Returns a tenant's own version if it is valid. */
export function ownVersion({ all, own }: TenantVersions): ActiveVersion | undefined {
  const { over, overBefore = over } = own ?? {};
  return over === all?.revision || overBefore === all?.revision ? own : undefined;
}

export interface Projecting {
  readonly projection: ProjectionDeclaration;
  readonly version: number;
  readonly event: SharedEvent;
  readonly keptDays: number;
}

async function project(
  scope: ProjectingScope,
  ctx: PipelineContext,
  store: ProjectionStore,
  work: Projecting,
) {
  const { projection, version, event, keptDays } = work;
  const run = projection.on.get(event.type) as NonNullable<ReturnType<typeof projection.on.get>>; // safe: a projection consumes only the types in its `on`
  const { commit: _commit, ...own } = ctx;
  const reads: ProjectionContext = Object.freeze({
    ...own,
    trace: ctx.trace,
    events: ctx.events,
    metrics: ctx.metrics,
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
    // First, because the error names the first condition that failed, and an item of an event that
    // was counted before may fail too. Safe cast: a mark has one action, like each `CommitItem`.
    const mark = store.mark(projection.name, version, event, keptDays) as CommitItem;
    await ctx.commit([mark, ...items], undefined);
    return true;
  } catch (error) {
    if (error instanceof CommitConditionError) {
      if (error.index === 0) return false;
      throw new CommitConditionError(error.index - 1, error.reason);
    }
    // The error of an item counts the mark. Checked without it, it counts as the projection does.
    if (error instanceof TypeError || error instanceof RangeError) assertCommittable(items, 1, 0);
    throw error;
  }
}
