import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import type { Clock } from "../../base/process/clock.ts";
import { inTime } from "../../base/process/in-time.ts";
import { Recent } from "../../base/process/recent.ts";
import { SharedReads } from "../../base/process/shared-reads.ts";
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
  const reads = new SharedReads<boolean>();

  const keep = (tenantId: string, isSuspended: boolean, atMs: number): void => {
    known.set(tenantId, isSuspended, atMs);
    asked.set(tenantId, true, atMs);
  };
  const read = async (
    tenantId: string,
    askedMs: number,
    isCurrent: () => boolean,
  ): Promise<boolean> => {
    try {
      const tenant = await inTime((await store()).read(tenantId));
      const isSuspended = tenant?.suspendedMs !== undefined;
      if (isCurrent()) keep(tenantId, isSuspended, askedMs);
      return isSuspended;
    } catch (error) {
      onUnreadable(error);
      const last = known.get(tenantId, clock.now());
      if (last === undefined) throw unreadable(error);
      if (isCurrent()) asked.set(tenantId, true, askedMs);
      return last;
    }
  };
  const joined = (tenantId: string, nowMs: number): Promise<boolean> =>
    reads.join(tenantId, nowMs, (isCurrent) => read(tenantId, nowMs, isCurrent));

  return {
    /**
     * @throws FrameworkError `tenant_suspended` (403); PipelineError 503 if the registry cannot be
     * read and the state is not known.
     */
    async assertActive(tenantId: string): Promise<void> {
      const nowMs = clock.now();
      const last = asked.get(tenantId, nowMs) && known.get(tenantId, nowMs);
      const isSuspended = last ?? (await joined(tenantId, nowMs));
      if (isSuspended) throw new FrameworkError("tenant_suspended", "The tenant is suspended");
    },
    /** Notes a state that this process has written. */
    note(tenantId: string, isSuspended: boolean): void {
      reads.forget(); // they may have found the state before the change
      keep(tenantId, isSuspended, clock.now());
    },
  };
}

function unreadable(cause: unknown): PipelineError {
  const message = "The state of the tenant cannot be read at the moment";
  return new PipelineError(message, 503, { cause, headers: { "retry-after": "2" } });
}
