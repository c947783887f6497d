import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { TenantStore } from "./tenant.ts";

export type Suspensions = ReturnType<typeof createSuspensions>;

interface SuspensionsOptions {
  readonly store: () => Promise<Pick<TenantStore, "read">>;
  readonly clock: Clock;
  /** Called for each read that failed. */
  readonly onUnreadable: (error: unknown) => void;
}

interface Known {
  readonly isSuspended: boolean;
  readonly readMs: number;
  /** Time of the last attempt to read. */
  readonly askedMs: number;
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
  const known = new Map<string, Known>();
  let flights = new Map<string, Promise<boolean>>();

  const keep = (tenantId: string, state: Known): void => {
    known.delete(tenantId);
    known.set(tenantId, state);
    if (known.size <= maxKnown) return;
    for (const oldest of known.keys()) {
      known.delete(oldest);
      return;
    }
  };
  const read = async (tenantId: string): Promise<boolean> => {
    const begunIn = flights;
    const askedMs = clock.now();
    try {
      const tenant = await (await store()).read(tenantId);
      const isSuspended = tenant?.suspendedMs !== undefined;
      // A change by this process replaces the flights, and the results of earlier ones are not kept.
      if (begunIn === flights) keep(tenantId, { isSuspended, readMs: askedMs, askedMs });
      return isSuspended;
    } catch (error) {
      onUnreadable(error);
      const last = known.get(tenantId);
      if (last === undefined || !isWithin(staleMs, last.readMs, askedMs)) throw unreadable(error);
      keep(tenantId, { ...last, askedMs });
      return last.isSuspended;
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
      const last = known.get(tenantId);
      const isFresh = last !== undefined && isWithin(freshMs, last.askedMs, clock.now());
      const isSuspended = isFresh ? last.isSuspended : await joined(tenantId);
      if (isSuspended) throw new FrameworkError("tenant_suspended", "The tenant is suspended");
    },
    /** Notes a state that this process has written. */
    note(tenantId: string, isSuspended: boolean): void {
      flights = new Map();
      const nowMs = clock.now();
      keep(tenantId, { isSuspended, readMs: nowMs, askedMs: nowMs });
    },
  };
}

/** A clock that was set back must not prolong a state. */
function isWithin(maxAgeMs: number, sinceMs: number, nowMs: number): boolean {
  const ageMs = nowMs - sinceMs;
  return ageMs >= 0 && ageMs < maxAgeMs;
}

function unreadable(cause: unknown): PipelineError {
  const message = "The state of the tenant cannot be read at the moment";
  return new PipelineError(message, 503, { cause, headers: { "retry-after": "2" } });
}
