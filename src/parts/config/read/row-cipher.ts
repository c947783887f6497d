import { isSealed, type Sealed } from "../../../base/secrets/sealed.ts";
import type { Secrets } from "../../../base/secrets/secrets.ts";
import type { ConfigKeyDefinition } from "../declare/key.ts";
import { type ConfigRow, formerPlace, type RowAddress } from "./rows.ts";

/**
 * With `unreadable`, the next level decides. With `locked`, the read fails, because a broader level
 * must never replace a tenant's secret.
 */
export type RowValue =
  | {
      readonly value: unknown /** It opens under any version, but must not. */;
      readonly isUnbound?: boolean;
    }
  | { readonly unreadable: string }
  | { readonly locked: string; readonly ringKey: string };

export interface RowCipher {
  prepare(ringKey: string): Promise<void> | undefined;
  /**
   * Reads the value of a row. A plain-text row of an encrypted key is never used, so that it cannot
   * survive unnoticed.
   */
  openRow(
    row: ConfigRow,
    definition: Pick<ConfigKeyDefinition, "encrypted">,
    address: RowAddress,
  ): RowValue;
  /** Seals a value for the version that its row will have. */
  seal(value: unknown, address: RowAddress, version: number): Promise<Sealed>;
  /** Whether the value would be sealed differently today. */
  isOutdated(value: Sealed, activeKey: string): boolean;
  /**
   * Seals a value again with the active key; `undefined` if it cannot be opened. A value bound to
   * its version stays bound.
   */
  reseal(row: SealedRow): Promise<Sealed | undefined>;
  active(): Promise<string>;
  refresh(): Promise<void>;
}

export interface SealedRow {
  readonly address: RowAddress;
  /** Rows written by hand may lack it. */
  readonly version: number | undefined;
  readonly value: Sealed;
}

export interface RowCipherOptions {
  /**
   * Whether sealed values open only under the version of their row. Default `false`, the format of
   * earlier versions.
   */
  readonly bindVersion?: boolean | undefined;
}

export function createRowCipher(
  secrets: Secrets,
  tableName: () => string,
  { bindVersion = false }: RowCipherOptions = {},
): RowCipher {
  const placeOf = ({ partition, key }: RowAddress) => [tableName(), partition, key];

  /** One part more than the unbound form, so that neither opens as the other. */
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
      // Safe: only `seal` produces values that open.
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

/** Rows written by hand may have no version, or one that is not a number. */
function versionText(version: unknown): string {
  return typeof version === "number" ? String(version) : "";
}
