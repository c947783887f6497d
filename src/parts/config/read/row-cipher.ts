import { isSealed, type Sealed } from "../../../base/secrets/sealed.ts";
import type { Secrets } from "../../../base/secrets/secrets.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { type ConfigRow, formerPlace, type RowAddress } from "./rows.ts";

/**
 * The value of a row; or why it has none, and the next level decides; or why nobody can tell,
 * and the read fails: a tenant's secret is never replaced by a broader one.
 */
export type RowValue =
  | {
      readonly value: unknown /** It would open under any version, and is to do so no more. */;
      readonly isUnbound?: boolean;
    }
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
  openRow(
    row: ConfigRow,
    definition: Pick<ConfigKeyDefinition, "encrypted">,
    address: RowAddress,
  ): RowValue;
  /** Seals a value for the version that its row will have. @throws as `Secrets.seal`. */
  seal(value: unknown, address: RowAddress, version: number): Promise<Sealed>;
  /** Whether a value is not as it would be sealed today. */
  isOutdated(value: Sealed, activeKey: string): boolean;
  /**
   * Seals a value anew with the active key; `undefined` where it does not open. What was bound to its version stays so.
   *
   * @throws as `Secrets.seal`.
   */
  reseal(row: SealedRow): Promise<Sealed | undefined>;
  /** The key that seals. @throws as `Secrets.active`. */
  active(): Promise<string>;
  /** @throws as `Secrets.refresh`. */
  refresh(): Promise<void>;
}

/** A row whose value is sealed. */
export interface SealedRow {
  readonly address: RowAddress;
  /** As it is stored; absent from rows that were put there by hand. */
  readonly version: number | undefined;
  readonly value: Sealed;
}

/** How a {@link RowCipher} seals. */
export interface RowCipherOptions {
  /** Whether what it seals opens only under the version of its row. Default `false`, as versions before this one seal. */
  readonly bindVersion?: boolean | undefined;
}

/** Creates the {@link RowCipher} of one table. */
export function createRowCipher(
  secrets: Secrets,
  tableName: () => string,
  { bindVersion = false }: RowCipherOptions = {},
): RowCipher {
  const placeOf = ({ partition, key }: RowAddress) => [tableName(), partition, key];

  /** One part more than without: neither form opens as the other. */
  const boundPlaceOf = (address: RowAddress, version: unknown) => [
    ...placeOf(address),
    versionText(version),
  ];

  const seal = async (
    text: string,
    address: RowAddress,
    version: unknown,
    binds: boolean,
  ): Promise<Sealed> =>
    binds
      ? { ...(await secrets.seal(text, boundPlaceOf(address, version))), bound: "version" }
      : secrets.seal(text, placeOf(address));

  const open = (
    value: Sealed,
    address: RowAddress,
    version: unknown,
  ): ReturnType<Secrets["open"]> => {
    if (value.sealed !== 1 || (value.bound !== undefined && value.bound !== "version")) {
      return { locked: "it is sealed in a form that this version of keelson does not know" };
    }
    if (value.bound === undefined) return secrets.open(value, placeOf(address));
    const opened = secrets.open(value, boundPlaceOf(address, version));
    if ("text" in opened) return opened;
    return {
      locked: `${opened.locked} (bound to the version of its row: ${versionText(version) || "none"})`,
    };
  };

  return {
    prepare: secrets.prepare,
    openRow: ({ value, version, [formerPlace]: place }, { encrypted }, asked) => {
      if (!encrypted) return { value };
      const address = place === undefined ? asked : { ...asked, key: place.key };
      if (!isSealed(value)) return { unreadable: "the row of an encrypted key is not sealed" };
      const opened = open(value, address, version);
      if (!("text" in opened))
        return {
          locked: `${address.key} of ${address.partition}: ${opened.locked}`,
          ringKey: value.key,
        };
      // Safe: only `seal` makes what opens.
      return {
        value: JSON.parse(opened.text) as unknown,
        isUnbound: bindVersion && value.bound === undefined,
      };
    },
    seal: (value, address, version) => seal(JSON.stringify(value), address, version, bindVersion),
    isOutdated: ({ key, bound }, activeKey) =>
      key !== activeKey || (bindVersion && bound === undefined),
    reseal: async ({ value, address, version }) => {
      await secrets.prepare(value.key);
      const opened = open(value, address, version);
      return "text" in opened
        ? seal(opened.text, address, version, bindVersion || value.bound !== undefined)
        : undefined;
    },
    active: secrets.active,
    refresh: secrets.refresh,
  };
}

/** A version as it is authenticated; rows that were put there by hand may have none, or one that is no number. */
function versionText(version: unknown): string {
  return typeof version === "number" ? String(version) : "";
}
