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

export interface SlotRow {
  /** Grows with each holder that is added. */
  readonly version: number;
  readonly holders: readonly SlotHolder[];
}

export interface AddedHolder {
  readonly holder: SlotHolder;
  /** The row as read; `undefined` if the row did not exist. */
  readonly row: SlotRow | undefined;
  /** Owners whose runs have ended, to be removed. */
  readonly ended: readonly string[];
  /** Time from which the store may delete the row, in epoch seconds. */
  readonly expiresAt: number;
}

export interface PlacedRow {
  readonly place: SlotPlace;
  readonly row: SlotRow;
}

/** Stores who holds the slots of each place. Every method is atomic. */
export interface SlotStore {
  /** Reads with strong consistency. */
  read(place: SlotPlace): Promise<SlotRow | undefined>;
  /** Resolves to `false` if another holder has been added since the row was read. */
  add(place: SlotPlace, added: AddedHolder): Promise<boolean>;
  /** Removes a holder, if it exists. */
  remove(place: SlotPlace, owner: string): Promise<void>;
  /** Returns the rows of a handler, including rows without holders. */
  list(handler: string): Promise<readonly PlacedRow[]>;
}
