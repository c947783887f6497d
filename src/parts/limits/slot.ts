import type { ClaimKey } from "../once/claim.ts";

/** Work that shares slots: all runs of a handler, or its runs for one tenant. */
export interface SlotPlace {
  readonly handler: string;
  readonly limit: "perTenant" | "total";
  /** Only with `perTenant`; `undefined` for runs without a tenant. */
  readonly tenantId?: string | undefined;
}

/**
 * A run that holds a slot for as long as it holds its claim. A slot has no separate lease: it is
 * free once the record of `key` no longer names `owner`.
 */
export interface SlotHolder {
  /** Owner of the claim, unique for each run. */
  readonly owner: string;
  readonly key: Pick<ClaimKey, "partition" | "sort">;
  /** When the run took the slot, in epoch milliseconds. */
  readonly sinceMs: number;
}

export interface AddedHolder {
  readonly holder: SlotHolder;
  /** Maximum number of holders, including this one. From 1. */
  readonly most: number;
  /** Whether the place had a row when it was read. */
  readonly hasRow: boolean;
  /** Time from which the store may delete the row, in epoch seconds. */
  readonly expiresAt: number;
}

export interface PlacedRow {
  readonly place: SlotPlace;
  readonly holders: readonly SlotHolder[];
}

/** Stores who holds the slots of each place. Every method is atomic. */
export interface SlotStore {
  /** Reads with strong consistency. Resolves to `undefined` if the place has no row. */
  read(place: SlotPlace): Promise<readonly SlotHolder[] | undefined>;
  /** Resolves to `false` if there are `most` holders, or if the row was made or deleted since. */
  add(place: SlotPlace, added: AddedHolder): Promise<boolean>;
  /** Removes holders that exist. */
  remove(place: SlotPlace, owners: readonly string[]): Promise<void>;
  /** Returns the rows of a handler, including rows without holders. */
  list(handler: string): Promise<readonly PlacedRow[]>;
}
