import type { TransactionItem } from "../../parts/once/claim-store.ts";

/** Version of a projection that readers use. */
export interface ActiveVersion {
  readonly version: number;
  /** Changes with each switch. */
  readonly revision: string;
  /** For a tenant's version, valid only under this revision of all tenants. */
  readonly over?: string | undefined;
}

/** The version of all tenants, and the tenant's own if it has one. */
export interface TenantVersions {
  readonly all?: ActiveVersion;
  readonly own?: ActiveVersion;
}

export interface RebuildState {
  readonly version: number;
  /** In milliseconds. Events published later reach the new version without a replay. */
  readonly startedMs: number;
  /** Current tenant (`""` for none), and position of the last replayed event. */
  readonly tenant: string;
  readonly after: string;
  readonly replayed: number;
  /** Tenants with events that could not be counted. */
  readonly lost?: readonly string[];
}

/** A tenant has or had events of a type. */
export interface FirstEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  /** End of the first event's retention, in seconds since the epoch. */
  readonly keptUntil: number | undefined;
}

/** The tenant `undefined` stands for all tenants. */
export interface ProjectionStore {
  active(name: string, tenantId: string | undefined): Promise<TenantVersions>;
  /** Returns `false` if `before` is no longer active. */
  activate(
    name: string,
    tenantId: string | undefined,
    next: ActiveVersion,
    before: ActiveVersion | undefined,
  ): Promise<boolean>;
  /** Returns the item that marks an event as counted. It fails if the event was counted before. */
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
