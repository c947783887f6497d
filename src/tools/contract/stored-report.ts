import type { AppOverrides } from "../../parts/config/declare/app-overrides.ts";
import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { ConfigKeyRegistry, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { withFormerRows } from "../../parts/config/read/former-rows.ts";
import type { RowCipher } from "../../parts/config/read/row-cipher.ts";
import { ownerOf, type PartitionOwner } from "../../parts/config/read/row-owner.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  formerPlace,
  isCurrent,
  type RowAddress,
} from "../../parts/config/read/rows.ts";
import {
  countsAt,
  type OpenedRow,
  readsOf,
  type StoredVerdict,
  type Verdict,
  verdictOf,
} from "./stored-rows.ts";

export interface StoredReport {
  /** Rows that are not read as stored, up to the requested limit. */
  readonly stored: readonly StoredVerdict[];
  /** Number of rows by verdict, listed or not. */
  readonly counts: Readonly<Record<Verdict, number>>;
  /** Number of stored values checked. */
  readonly rows: number;
  readonly unlisted: number;
  /**
   * Number of secrets that could not be checked, because the key ring is missing or does not
   * decrypt them.
   */
  readonly unopened: number;
}

export interface StoredRow {
  readonly address: RowAddress;
  readonly row: ConfigRow;
}

/** Page of rows, with the number of items scanned for it. */
export interface StoredPage {
  readonly rows: readonly StoredRow[];
  readonly scanned: number;
}

export interface ReportSources {
  readonly registry: ConfigKeyRegistry;
  readonly pages: AsyncIterable<StoredPage>;
  readonly reader: ConfigRowReader;
  readonly overrides: AppOverrides;
  readonly openRow: RowCipher["openRow"];
  /** Identifiers of keys that were encrypted before. */
  readonly wereEncrypted: ReadonlySet<string>;
  readonly nowMs: number;
  /** Maximum number of rows to list. Others are only counted. */
  readonly limit: number;
  /** Receives the number of items scanned so far, after each page. */
  readonly onPage: (scanned: number) => void;
}

/**
 * Checks all rows, page by page, and reports for each row that is not read as stored which value is
 * read instead.
 */
export async function reportStored(sources: ReportSources): Promise<StoredReport> {
  const { pages, limit, onPage } = sources;
  const counts = { clamped: 0, fallback: 0, ignored: 0 };
  const stored: StoredVerdict[] = [];
  let [rows, unopened, scanned] = [0, 0, 0];
  for await (const page of pages) {
    const looked = await lookedAt(sources, page);
    rows += looked.length;
    unopened += looked.filter(
      ({ opened, verdict }) =>
        verdict === undefined && opened !== undefined && "locked" in opened.row,
    ).length;
    const found = looked.flatMap((one) =>
      one.verdict === undefined ? [] : [{ ...one, verdict: one.verdict }],
    );
    for (const { verdict } of found) counts[verdict] += 1;
    stored.push(...(await listed(sources, found.slice(0, limit - stored.length))));
    scanned += page.scanned;
    onPage(scanned);
  }
  const unlisted = counts.clamped + counts.fallback + counts.ignored - stored.length;
  return { stored, counts, rows, unlisted, unopened };
}

/** Row with the key that reads it. */
interface Looked {
  readonly address: RowAddress;
  readonly owner: PartitionOwner;
  /** Key that reads the row. `undefined` if the key is not declared. */
  readonly key: RegisteredConfigKey | undefined;
  /** Row that applies instead of this one, if a row of the key's new name replaced it. */
  readonly instead: ConfigRow | undefined;
  /** Opened row, if it is the row that applies for a key. */
  readonly opened: OpenedRow | undefined;
  readonly verdict: Verdict | undefined;
}

async function lookedAt(sources: ReportSources, { rows }: StoredPage): Promise<readonly Looked[]> {
  const { registry, nowMs } = sources;
  const current = rows.flatMap(({ address, row }) => {
    const owner = ownerOf(address.partition);
    if (owner === undefined || !isCurrent(row, nowMs)) return [];
    return [
      {
        address,
        row,
        owner,
        key: registry.configKeys.get(address.key) ?? successorOf(address.key, registry),
      },
    ];
  });
  const renamed = current.flatMap(({ address: { partition }, key }) =>
    key?.definition.formerly === undefined ? [] : [{ partition, key: key.id }],
  );
  const counting = await readOnce(sources, renamed);
  return current.flatMap((one) => lookAt(sources, one, counting));
}

function lookAt(
  { openRow, nowMs }: ReportSources,
  { address, row, owner, key }: StoredRow & Pick<Looked, "owner" | "key">,
  counting: Rows,
): readonly Looked[] {
  const looked = { address, owner, key, instead: undefined, opened: undefined };
  // A superseded row is only a remnant of a rename, so it is not reported.
  const ignored = row.renamedTo === undefined ? [{ ...looked, verdict: "ignored" as const }] : [];
  if (key === undefined) return ignored;
  if (key.definition.formerly !== undefined) {
    const instead = counting({ partition: address.partition, key: key.id });
    const counts =
      isCurrent(instead, nowMs) && (instead[formerPlace]?.key ?? key.id) === address.key;
    if (!counts) return ignored.map((one) => ({ ...one, instead }));
  }
  const {
    levels: [level],
  } = owner;
  // Safe: every owner has a level.
  const source = (level as PartitionOwner["levels"][number]).source;
  const opened = { source, row: openRow(row, key.definition, address) };
  return [{ ...looked, opened, verdict: verdictOf(key, opened) }];
}

/** Resolves the values that are read instead of the found rows. */
async function listed(
  sources: ReportSources,
  found: readonly (Looked & { readonly verdict: Verdict })[],
): Promise<readonly StoredVerdict[]> {
  const { overrides, wereEncrypted, openRow, nowMs } = sources;
  const broader = ({ key, owner }: Looked) =>
    key === undefined ? [] : owner.levels.slice(1).filter(({ source }) => countsAt(key, source));
  const rows = await readOnce(
    sources,
    found.flatMap((one) =>
      broader(one).map(({ partition }) => ({ partition, key: String(one.key?.id) })),
    ),
  );
  return found.map((one): StoredVerdict => {
    const { address, owner, key, instead, opened, verdict } = one;
    const opens = (
      { source, partition }: PartitionOwner["levels"][number],
      row: ConfigRow | undefined,
    ): OpenedRow[] => {
      if (key === undefined || !isCurrent(row, nowMs)) return [];
      return [{ source, row: openRow(row, key.definition, { partition, key: key.id }) }];
    };
    const surroundings = [
      ...(opened === undefined
        ? owner.levels.slice(0, 1).flatMap((level) => opens(level, instead))
        : [opened]),
      ...broader(one).flatMap((level) =>
        opens(level, rows({ partition: level.partition, key: String(key?.id) })),
      ),
    ];
    const reads = readsOf(key, {
      rows: surroundings,
      override: key === undefined ? undefined : overrides[key.id],
      wasEncrypted: [
        address.key,
        ...(key === undefined ? [] : [key.id, ...(key.definition.formerly ?? [])]),
      ].some((id) => wereEncrypted.has(id)),
    });
    return {
      key: address.key,
      scope: owner.scope,
      tenantId: owner.tenantId ?? null,
      verdict,
      reads,
    };
  });
}

type Rows = (address: RowAddress) => ConfigRow | undefined;

/** Reads rows the way the resolver does, each address once. */
async function readOnce(
  { reader, registry }: ReportSources,
  addresses: readonly RowAddress[],
): Promise<Rows> {
  const distinct = new Map(addresses.map((address) => [textOf(address), address]));
  const rows = await withFormerRows(reader, registry).read([...distinct.values()]);
  const found = new Map([...distinct.keys()].map((text, index) => [text, rows[index]]));
  return (address) => found.get(textOf(address));
}

function textOf({ partition, key }: RowAddress): string {
  return JSON.stringify([partition, key]);
}
