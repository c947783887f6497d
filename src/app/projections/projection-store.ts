import type { TransactionItem } from "../../parts/once/claim-store.ts";

/** Version of a projection that readers use. */
export interface ActiveVersion {
  readonly version: number;
  /** Random ID, new each time readers are switched to another version of the projection. */
  readonly revision: string;
  /** For a tenant's own version: valid while the version of all tenants has this revision. */
  readonly over?: string | undefined;
}

export interface TenantVersions {
  readonly all?: ActiveVersion;
  readonly own?: ActiveVersion;
}

export interface RebuildState {
  readonly version: number;
  /** In milliseconds since the epoch. Later events reach the new version without a replay. */
  readonly startedMs: number;
  /** Tenant being replayed (`""` for none), and position of its last replayed event. */
  readonly tenant: string;
  readonly after: string;
  readonly replayed: number;
  readonly lost?: readonly string[];
}

/** First event of a tenant and type. It may have expired. */
export interface FirstEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  /** In seconds since the epoch. */
  readonly keptUntil: number | undefined;
}

/** Stores versions and rebuilds. The tenant `undefined` stands for all tenants. */
export interface ProjectionStore {
  active(name: string, tenantId: string | undefined): Promise<TenantVersions>;
  /** Makes `next` the active version. Returns `false` if `before` is no longer active. */
  activate(
    name: string,
    tenantId: string | undefined,
    next: ActiveVersion,
    before: ActiveVersion | undefined,
  ): Promise<boolean>;
  /** Returns an item that marks an event as counted, and fails if the event was counted before. */
  mark(name: string, version: number, event: Marked, keptDays: number): TransactionItem;
  isCounted(name: string, version: number, event: Marked): Promise<boolean>;
  rebuild(name: string, tenantId: string | undefined): Promise<RebuildState | undefined>;
  saveRebuild(name: string, tenantId: string | undefined, state: RebuildState): Promise<void>;
  endRebuild(name: string, tenantId: string | undefined): Promise<void>;
  /** For all tenants, reads the whole table. */
  firstEvents(types: readonly string[], tenantId: string | undefined): AsyncIterable<FirstEvent>;
}

export interface Marked {
  readonly tenantId?: string | undefined;
  readonly eventId: string;
}
