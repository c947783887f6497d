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
      readonly value: unknown;
      /** The secret is not bound to its row's version, although `bindVersion` is on. */
      readonly isUnbound?: boolean;
    }
  | { readonly unreadable: string }
  | { readonly locked: string; readonly ringKey: string };

export type RowCipher = ReturnType<typeof createRowCipher>;

export interface SealedRow {
  readonly address: RowAddress;
  readonly version: number | undefined;
  readonly value: Sealed;
}

/** `bindVersion` binds each value to its row's version. Default `false`, the earlier format. */
export function createRowCipher(
  secrets: Secrets,
  tableName: () => string,
  { bindVersion = false }: { readonly bindVersion?: boolean | undefined } = {},
) {
  const placeOf = ({ partition, key }: RowAddress) => [tableName(), partition, key];

  /** Has one part more than `placeOf`, so that neither form can be decrypted as the other. */
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
    /** A plain-text value of an encrypted key is never used, so that it cannot survive unnoticed. */
    openRow: (
      { value, version, [formerPlace]: place }: ConfigRow,
      { encrypted }: Pick<ConfigKeyDefinition, "encrypted">,
      asked: RowAddress,
    ): RowValue => {
      if (!encrypted) return { value };
      const address = place === undefined ? asked : { ...asked, key: place.key };
      if (!isSealed(value)) return { unreadable: "the row of an encrypted key is not sealed" };
      const opened = open(value, address, version);
      if (!("text" in opened)) {
        const locked = `${address.key} of ${address.partition}: ${opened.locked}`;
        return { locked, ringKey: value.key };
      }
      const isUnbound = bindVersion && value.bound === undefined;
      // Parsing is safe: only `seal` produces values that can be decrypted.
      return { value: JSON.parse(opened.text) as unknown, isUnbound };
    },
    /** `version` is the future version of the row. */
    seal: (value: unknown, address: RowAddress, version: number) =>
      seal(JSON.stringify(value), address, version, bindVersion),
    isOutdated: ({ key, bound }: Sealed, activeKey: string) =>
      key !== activeKey || (bindVersion && bound === undefined),
    reseal: async ({ value, address, version }: SealedRow) => {
      await secrets.prepare(value.key);
      const opened = open(value, address, version);
      if (!("text" in opened)) return undefined;
      return seal(opened.text, address, version, bindVersion || value.bound !== undefined);
    },
    active: secrets.active,
    refresh: secrets.refresh,
  };
}

/** The version of a row written by hand may be missing or not a number. */
function versionText(version: unknown): string {
  return typeof version === "number" ? String(version) : "";
}
