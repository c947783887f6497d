import { ConflictError, NotFoundError, PipelineError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import { defined } from "../../base/types/defined.ts";
import type { Suspensions } from "./suspensions.ts";
import type { StoredTenant, Suspension, Tenant, TenantStore, Tenants } from "./tenant.ts";
import { cursorOf, readId, readNewTenant, readPage, readReason } from "./tenant-input.ts";

interface TenantsOptions {
  readonly store: TenantStore;
  readonly suspensions: Pick<Suspensions, "note">;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info">;
}

/** Attempts of a change that other processes prevent. */
const maxAttempts = 5;

export function createTenants({ store, suspensions, clock, log }: TenantsOptions): Tenants {
  const read = async (given: unknown): Promise<StoredTenant> => {
    const id = readId(given);
    const tenant = await store.read(id);
    if (tenant === undefined) throw new NotFoundError("tenant", id);
    return tenant;
  };
  /** Repeats the change if another process changes the tenant in the meantime. */
  const change = async (
    id: string,
    changed: (tenant: StoredTenant) => Suspension | undefined,
  ): Promise<StoredTenant> => {
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const tenant = await read(id);
      const suspension = changed(tenant);
      if (!(await store.change(tenant, suspension))) continue;
      suspensions.note(tenant.tenantId, suspension !== undefined);
      return { ...tenant, suspendedMs: undefined, reason: undefined, ...suspension };
    }
    const message = `The tenant ${id} keeps changing; try again`;
    throw new PipelineError(message, 503, { headers: { "retry-after": "1" } });
  };
  return {
    create: async (given) => {
      const { id: tenantId, name, timeZone } = readNewTenant(given);
      const tenant = { tenantId, name, timeZone, createdMs: clock.now() };
      if (!(await store.add(tenant))) {
        const message = `Conflict: the tenant ${tenantId} is registered already`;
        throw new ConflictError("tenant_exists", message);
      }
      suspensions.note(tenantId, false);
      log.info("tenant.created", { tenantId });
      return tenantOf(tenant);
    },
    get: async (id) => tenantOf(await read(id)),
    list: async (options) => {
      const { limit, after } = readPage(options);
      const { items, next } = await store.page(limit, after);
      return {
        items: items.map(tenantOf),
        ...(next === undefined ? {} : { cursor: cursorOf(next) }),
      };
    },
    suspend: async (id, options) => {
      const reason = readReason(options);
      const suspended = await change(id, ({ suspendedMs = clock.now() }) => ({
        suspendedMs,
        reason,
      }));
      log.info("tenant.suspended", { tenantId: id, reason });
      return tenantOf(suspended);
    },
    resume: async (id) => {
      const resumed = await change(id, () => undefined);
      log.info("tenant.resumed", { tenantId: id });
      return tenantOf(resumed);
    },
  };
}

function tenantOf(tenant: StoredTenant): Tenant {
  const { tenantId: id, name, timeZone, createdMs, suspendedMs, reason } = tenant;
  const suspended =
    suspendedMs === undefined || reason === undefined
      ? undefined
      : { at: timeOf(id, suspendedMs), reason };
  return {
    id,
    ...defined({ name }),
    timeZone,
    createdAt: timeOf(id, createdMs),
    status: suspended === undefined ? "active" : "suspended",
    ...defined({ suspended }),
  };
}

/** @throws Error that names the tenant, whose row something else than keelson has changed. */
function timeOf(id: string, ms: number): string {
  const date = new Date(ms);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  const row = `the registration of the tenant ${quoted(id)}`;
  throw new Error(`${row} cannot be read: a time is ${quoted(ms)}; correct its rows`);
}
