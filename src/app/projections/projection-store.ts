import type { TransactionItem } from "../../parts/once/claim-store.ts";

export interface ActiveVersion {
  readonly version: number;
  /** Random ID, new with each switch of readers to another version. */
  readonly revision: string;
  /** A tenant's own version is valid while the version of all tenants has this revision. */
  readonly over?: string | undefined;
  /** It is also valid over this earlier revision, because the switch to `over` may fail. */
  readonly overBefore?: string | undefined;
}

export interface TenantVersions {
  readonly all?: ActiveVersion;
  readonly own?: ActiveVersion;
}

export interface RebuildState {
  readonly version: number;
  /** In milliseconds since the epoch. Later events reach the new version without a replay. */
  readonly startedMs: number;
  /** Tenant being replayed (`""` for none), and its last replayed event. */
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
  /** Item that marks an event as counted, and fails if it was counted before. */
  mark(name: string, version: number, event: Marked, keptDays: number): TransactionItem;
  isCounted(name: string, version: number, event: Marked): Promise<boolean>;
  rebuild(name: string, tenantId: string | undefined): Promise<RebuildState | undefined>;
  saveRebuild(name: string, tenantId: string | undefined, state: RebuildState): Promise<void>;
  endRebuild(name: string, tenantId: string | undefined): Promise<void>;
  /** For all tenants, reads the whole table, and tells `onPage` the number of rows read so far. */
  firstEvents(
    types: readonly string[],
    tenantId: string | undefined,
    onPage?: (scanned: number) => void,
  ): AsyncIterable<FirstEvent>;
}

export interface Marked {
  readonly tenantId?: string | undefined;
  readonly eventId: string;
}
