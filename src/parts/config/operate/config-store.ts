import type { Sealed } from "../../../base/secrets/sealed.ts";
import type { CommitItem } from "../../../base/types/database.ts";
import type { SealedRow } from "../read/row-cipher.ts";
import type { ConfigRow, ConfigRowReader, RowAddress } from "../read/rows.ts";

/** The kind of a checked write. */
export type WriteAction = "set" | "reset" | "undo";

/** A row as one write left it. */
export interface HistoryEntry extends ConfigRow {
  readonly action: WriteAction;
}

/** A row to be written, with its entry in the history. */
export interface RowWrite {
  readonly address: RowAddress;
  /** Whose row it is; `undefined` for one of all tenants. */
  readonly tenantId?: string | undefined;
  readonly row: ConfigRow;
  /** What history keeps of it. */
  readonly entry: HistoryEntry;
  /** The row that has to be there still, by its version; `undefined` where there has to be none. */
  readonly seen: ConfigRow | undefined;
}

/** Which entries of a history are read. */
export interface HistoryRange {
  /** Only entries of lower versions. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** Rows as the operators see them: read consistently and past any cache, written together with their history. */
export interface ConfigStore extends ConfigRowReader {
  /** Writes the row and its entry in the history, both or neither; `false` where the stored row is another version. */
  write(write: RowWrite): Promise<boolean>;
  /** The items of such a write, for a transaction that has more of them. */
  itemsOf(write: RowWrite): readonly CommitItem[];
  /** The entries of one row's history, the newest first. */
  history(address: RowAddress, range: HistoryRange): Promise<readonly HistoryEntry[]>;
  /** A page of the rows that are sealed, of all tenants; `from` is the `next` of the page before. */
  sealedRows(from: string | undefined): Promise<SealedPage>;
  /** Puts another sealed value into a row; `false` where the row has been written meanwhile. */
  reseal(row: SealedRow, value: Sealed): Promise<boolean>;
}

/** Some of the sealed rows. */
export interface SealedPage {
  readonly rows: readonly SealedRow[];
  /** How many items were looked at for them. */
  readonly scanned: number;
  /** Where the next page begins; absent at the end. */
  readonly next?: string;
}
