import type { ConfigKeyDefinition } from "./declaration.ts";
import type { ConfigRow, RowAddress } from "./rows.ts";
import { isSealed, type Sealed } from "./sealed.ts";
import type { Secrets } from "./secrets.ts";

/**
 * The value of a row; or why it has none, and the next level decides; or why nobody can tell,
 * and the read fails: a tenant's secret is never replaced by a broader one.
 */
export type RowValue =
  | { readonly value: unknown }
  | { readonly unreadable: string }
  | { readonly locked: string; readonly ringKey: string };

/** Takes values out of rows, and puts secrets into them. */
export interface RowCipher {
  /** As `Secrets.prepare`. */
  prepare(ringKey: string): Promise<void> | undefined;
  /**
   * Takes the value out of a row. A secret counts only where it is sealed: a row of an encrypted
   * key in plain text is never used, so that none survives unnoticed.
   */
  openRow(row: ConfigRow, definition: Pick<ConfigKeyDefinition, "encrypted">, address: RowAddress): RowValue;
  /** @throws as `Secrets.seal`. */
  seal(value: unknown, address: RowAddress): Promise<Sealed>;
  /** Seals a value anew with the active key; `undefined` where it does not open. @throws as `Secrets.seal`. */
  reseal(value: Sealed, address: RowAddress): Promise<Sealed | undefined>;
  /** The key that seals. @throws as `Secrets.active`. */
  active(): Promise<string>;
  /** @throws as `Secrets.refresh`. */
  refresh(): Promise<void>;
}

/** Creates the {@link RowCipher} of one table. */
export function createRowCipher(secrets: Secrets, tableName: () => string): RowCipher {
  const placeOf = ({ partition, key }: RowAddress) => [tableName(), partition, key];
  return {
    prepare: secrets.prepare,
    openRow: (row, { encrypted }, address) => {
      if (!encrypted) return { value: row.value };
      if (!isSealed(row.value)) return { unreadable: "the row of an encrypted key is not sealed" };
      const opened = secrets.open(row.value, placeOf(address));
      // Safe: only `seal` makes what opens.
      if ("text" in opened) return { value: JSON.parse(opened.text) as unknown };
      return { locked: `${address.key} of ${address.partition}: ${opened.locked}`, ringKey: row.value.key };
    },
    seal: (value, address) => secrets.seal(JSON.stringify(value), placeOf(address)),
    reseal: async (value, address) => {
      await secrets.prepare(value.key);
      const opened = secrets.open(value, placeOf(address));
      return "text" in opened ? secrets.seal(opened.text, placeOf(address)) : undefined;
    },
    active: secrets.active,
    refresh: secrets.refresh,
  };
}
