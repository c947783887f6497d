import { run } from "../ctx/run.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { Projecting } from "../projections/projections.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";

/**
 * Writes an event into the active and the declared version of a projection, each in a separate
 * commit. The consumer's run commits the declared version.
 */
export async function projectLive(
  scope: RequestScope,
  adapters: Adapters,
  ctx: PipelineContext,
  work: Omit<Projecting, "version">,
): Promise<void> {
  const projections = await scope.runtime.projections.open();
  const { name, version: declared } = work.projection;
  const active = await projections.written(work.projection, work.event.tenantId);
  const countsThere =
    active !== declared && (await projectAlone(scope, adapters, { ...work, version: active }));
  const countsHere = await projections.project(scope, ctx, { ...work, version: declared });
  if (!countsThere && !countsHere)
    scope.log.debug("projection.counted_before", { projection: name });
}

/**
 * Writes an event into one version, in a run without a claim: the mark of the event ensures that it
 * is counted once.
 *
 * @returns `false` if the version has already counted the event.
 */
export async function projectAlone(
  scope: RequestScope,
  adapters: Adapters,
  work: Projecting,
): Promise<boolean> {
  const projections = await scope.runtime.projections.open();
  const { eventId, origRequestId, tenantId, userId } = work.event;
  let counts = false;
  await run(scope, adapters, {
    logPrefix: "event",
    claim: undefined,
    cause: { causedBy: eventId, origRequestId, tenantId, userId },
    handle: async (ctx) => {
      counts = await projections.project(scope, ctx, work);
    },
  });
  return counts;
}
