import type { TransactionItem } from "../once/claim-store.ts";

/** Which version of a projection is read. */
export interface ActiveVersion {
  readonly version: number;
  /** Another one with each switch. */
  readonly revision: string;
  /** Of a tenant's own: the revision of what all tenants had when it was made. It counts for as long as they have it. */
  readonly over?: string | undefined;
}

/** Where a rebuild has come to. */
export interface RebuildState {
  readonly version: number;
  /** When it began, in milliseconds: what is published later reaches the new version by itself. */
  readonly startedMs: number;
  /** The tenant that it is at, `""` for events without tenant, and the place of the last event that it has replayed. */
  readonly tenant: string;
  readonly after: string;
  readonly replayed: number;
  /** Tenants with events that could not be counted. Default: none. */
  readonly lost?: readonly string[];
}

/** That a tenant has, or had, events of a type. */
export interface FirstEvent {
  readonly tenantId: string | undefined;
  readonly type: string;
  /** Until when the first was kept, in seconds since the epoch; `undefined` for ever. */
  readonly keptUntil: number | undefined;
}

/** What is known of projections. The tenant `undefined` is all of them. */
export interface ProjectionStore {
  /** What all tenants have, and what the tenant has of its own. */
  active(
    name: string,
    tenantId: string | undefined,
  ): Promise<{ readonly all?: ActiveVersion; readonly own?: ActiveVersion }>;
  /** Sets the active version in the place of `before`; `false` where that is not there any more. */
  activate(
    name: string,
    tenantId: string | undefined,
    next: ActiveVersion,
    before: ActiveVersion | undefined,
  ): Promise<boolean>;
  /** What marks an event as counted, for the transaction that counts it. It fails where the event was counted before. */
  mark(name: string, version: number, event: Marked, keptDays: number): TransactionItem;
  /** Whether an event was counted. */
  isCounted(name: string, version: number, event: Marked): Promise<boolean>;
  rebuild(name: string, tenantId: string | undefined): Promise<RebuildState | undefined>;
  saveRebuild(name: string, tenantId: string | undefined, state: RebuildState): Promise<void>;
  endRebuild(name: string, tenantId: string | undefined): Promise<void>;
  /** The first events of some types: of one tenant, or of all, for which the whole table is read. */
  firstEvents(types: readonly string[], tenantId: string | undefined): AsyncIterable<FirstEvent>;
}

/** What a mark is about. */
export interface Marked {
  readonly tenantId?: string | undefined;
  readonly eventId: string;
}
