import type { TransactionItem } from "../../parts/once/claim-store.ts";

/** Active version of a projection, which readers use. */
export interface ActiveVersion {
  readonly version: number;
  /** Changes with each switch. */
  readonly revision: string;
  /**
   * For a tenant's version: the revision that all tenants had when it was created. The tenant's
   * version is valid while that revision is active.
   */
  readonly over?: string | undefined;
}

export interface RebuildState {
  readonly version: number;
  /** Start time, in milliseconds. Events published later reach the new version without a replay. */
  readonly startedMs: number;
  /**
   * Current tenant (`""` for events without a tenant), and the position of the last replayed event.
   */
  readonly tenant: string;
  readonly after: string;
  readonly replayed: number;
  /** Tenants with events that could not be counted. Default: an empty list. */
  readonly lost?: readonly string[];
}

/** Record that a tenant has or had events of a type. */
export interface FirstEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  /**
   * End of the first event's retention, in seconds since the epoch; `undefined` if it has no end.
   */
  readonly keptUntil: number | undefined;
}

/** State of projections. The tenant `undefined` stands for all tenants. */
export interface ProjectionStore {
  /** Reads the active version of all tenants, and the tenant's version if it has one. */
  active(
    name: string,
    tenantId: string | undefined,
  ): Promise<{ readonly all?: ActiveVersion; readonly own?: ActiveVersion }>;
  /**
   * Replaces the active version `before` with `next`. Returns `false` if `before` is no longer
   * active.
   */
  activate(
    name: string,
    tenantId: string | undefined,
    next: ActiveVersion,
    before: ActiveVersion | undefined,
  ): Promise<boolean>;
  /**
   * Returns the item that marks an event as counted, for the transaction that counts it. The item
   * fails if the event was counted before.
   */
  mark(name: string, version: number, event: Marked, keptDays: number): TransactionItem;
  isCounted(name: string, version: number, event: Marked): Promise<boolean>;
  rebuild(name: string, tenantId: string | undefined): Promise<RebuildState | undefined>;
  saveRebuild(name: string, tenantId: string | undefined, state: RebuildState): Promise<void>;
  endRebuild(name: string, tenantId: string | undefined): Promise<void>;
  /**
   * Reads the first events of some types, of one tenant or of all. For all tenants it reads the
   * whole table.
   */
  firstEvents(types: readonly string[], tenantId: string | undefined): AsyncIterable<FirstEvent>;
}

/** Event that a mark refers to. */
export interface Marked {
  readonly tenantId?: string | undefined;
  readonly eventId: string;
}
