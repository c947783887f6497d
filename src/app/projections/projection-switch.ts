import { randomUUID } from "node:crypto";
import type { ProjectionDeclaration } from "../handlers/message-handlers.ts";
import type { ProjectionStore, TenantVersions } from "./projection-store.ts";
import { effectiveVersion } from "./projections.ts";

interface Switching {
  readonly store: ProjectionStore;
  readonly projection: Pick<ProjectionDeclaration, "name" | "version">;
  /** Tenants with events that could not be counted, except `""`, which is no tenant. */
  readonly lost: readonly string[];
  readonly whole: readonly string[];
}

/**
 * Activates the declared version in one conditional write, except for tenants with events that
 * could not be counted, which keep their active version.
 * @returns whether another version was active.
 */
export async function switchTo(
  switching: Switching,
  tenantId: string | undefined,
  before: TenantVersions,
): Promise<boolean> {
  const { store, projection, lost, whole } = switching;
  const { name, version } = projection;
  if (effectiveVersion(before)?.version === version) {
    // Switches tenants that have kept another version since an earlier rebuild.
    if (tenantId === undefined)
      for (const tenant of whole) if (tenant !== "") await follow(switching, tenant);
    return false;
  }
  // Before the first activation, every tenant reads the declared version, so all tenants switch.
  if (before.all === undefined && tenantId !== undefined)
    return switchTo(switching, undefined, before);
  const revision = randomUUID();
  if (tenantId === undefined && before.all !== undefined) {
    // Pins these tenants to their version before the switch. The pins name the new revision, so
    // they take effect with the switch, and no reader sees an incomplete version.
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
