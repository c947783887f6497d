import type { Sealed } from "../../../base/secrets/sealed.ts";
import type { CommitItem } from "../../../base/types/database.ts";
import type { SealedRow } from "../read/row-cipher.ts";
import type { ConfigRow, ConfigRowReader, RowAddress } from "../read/rows.ts";

/** Kind of write: by `setConfig`, `resetConfig` or `undoConfig`. */
export type WriteAction = "set" | "reset" | "undo";

export interface HistoryEntry extends ConfigRow {
  readonly action: WriteAction;
}

export interface RowWrite {
  readonly address: RowAddress;
  /** Tenant that owns the row; `undefined` for a row that all tenants share. */
  readonly tenantId?: string | undefined;
  readonly row: ConfigRow;
  readonly entry: HistoryEntry;
  /** Row that was read, whose version must still be stored; `undefined` if none may exist. */
  readonly seen: ConfigRow | undefined;
}

/** Store of rows for operators. Reads are consistent and bypass the cache. */
export interface ConfigStore extends ConfigRowReader {
  /**
   * Writes the row and its history entry atomically; `false` if the stored row has another version.
   */
  write(write: RowWrite): Promise<boolean>;
  /** Returns the actions of a write, for a transaction with other items. */
  itemsOf(write: RowWrite): readonly CommitItem[];
  /** Returns the history of one row, the newest entry first. `before` is exclusive. */
  history(
    address: RowAddress,
    range: { readonly before?: number | undefined; readonly limit: number },
  ): Promise<readonly HistoryEntry[]>;
  /** Returns encrypted rows of all tenants. `from` is the `next` of the previous page. */
  sealedRows(from: string | undefined): Promise<SealedPage>;
  /** Replaces an encrypted value; `false` if another write has changed the row. */
  reseal(row: SealedRow, value: Sealed): Promise<boolean>;
}

interface SealedPage {
  readonly rows: readonly SealedRow[];
  readonly scanned: number;
  readonly next?: string;
}
