import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import { Recent } from "../../base/process/recent.ts";
import type { TenantStore } from "./tenant.ts";

export type Suspensions = ReturnType<typeof createSuspensions>;

interface SuspensionsOptions {
  readonly store: () => Promise<Pick<TenantStore, "read">>;
  readonly clock: Clock;
  /** Called for each read that failed. */
  readonly onUnreadable: (error: unknown) => void;
}

/** Age at which a tenant is read again, so that a suspension elsewhere applies in time. */
const freshMs = 5_000;
/** Time for which the last known state counts while reads fail. */
const staleMs = 60_000;
const maxKnown = 10_000;

/**
 * Knows which tenants are suspended: each costs at most one read in five seconds, and concurrent
 * requests share it. Unregistered tenants are not suspended.
 */
export function createSuspensions({ store, clock, onUnreadable }: SuspensionsOptions) {
  const known = new Recent<boolean>(maxKnown, staleMs);
  /** Tenants that were read, or could not be read, just now. */
  const asked = new Recent<true>(maxKnown, freshMs);
  let flights = new Map<string, Promise<boolean>>();

  const keep = (tenantId: string, isSuspended: boolean, atMs: number): void => {
    known.set(tenantId, isSuspended, atMs);
    asked.set(tenantId, true, atMs);
  };
  const read = async (tenantId: string): Promise<boolean> => {
    const begunIn = flights;
    const askedMs = clock.now();
    try {
      const tenant = await (await store()).read(tenantId);
      const isSuspended = tenant?.suspendedMs !== undefined;
      // A change by this process replaces the flights, and the results of earlier ones are not kept.
      if (begunIn === flights) keep(tenantId, isSuspended, askedMs);
      return isSuspended;
    } catch (error) {
      onUnreadable(error);
      const last = known.get(tenantId, clock.now());
      if (last === undefined) throw unreadable(error);
      asked.set(tenantId, true, askedMs);
      return last;
    }
  };
  const joined = (tenantId: string): Promise<boolean> => {
    const begunIn = flights;
    const flight = begunIn.get(tenantId) ?? read(tenantId).finally(() => begunIn.delete(tenantId));
    begunIn.set(tenantId, flight);
    return flight;
  };

  return {
    /**
     * @throws FrameworkError `tenant_suspended` (403); PipelineError 503 if the registry cannot be
     * read and the state is not known.
     */
    async assertActive(tenantId: string): Promise<void> {
      const nowMs = clock.now();
      const last = asked.get(tenantId, nowMs) && known.get(tenantId, nowMs);
      const isSuspended = last ?? (await joined(tenantId));
      if (isSuspended) throw new FrameworkError("tenant_suspended", "The tenant is suspended");
    },
    /** Notes a state that this process has written. */
    note(tenantId: string, isSuspended: boolean): void {
      flights = new Map();
      keep(tenantId, isSuspended, clock.now());
    },
  };
}

function unreadable(cause: unknown): PipelineError {
  const message = "The state of the tenant cannot be read at the moment";
  return new PipelineError(message, 503, { cause, headers: { "retry-after": "2" } });
}
