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

/** What stored rows come to. */
export interface StoredReport {
  /** At most as many as were asked for. */
  readonly stored: readonly StoredVerdict[];
  /** All of them, listed or not. */
  readonly counts: Readonly<Record<Verdict, number>>;
  /** How many stored values were looked at. */
  readonly rows: number;
  /** How many are counted, but not listed. */
  readonly unlisted: number;
  /** How many secrets nobody could look at, since the key ring is not there or does not open them. */
  readonly unopened: number;
}

/** A row as it lies in the table. */
export interface StoredRow {
  readonly address: RowAddress;
  readonly row: ConfigRow;
}

/** Some of the rows, and how many items were looked at for them. */
export interface StoredPage {
  readonly rows: readonly StoredRow[];
  readonly scanned: number;
}

/** What a report is made of. */
export interface ReportSources {
  readonly registry: ConfigKeyRegistry;
  /** All rows. */
  readonly pages: AsyncIterable<StoredPage>;
  /** Rows as they are stored, by their address. */
  readonly reader: ConfigRowReader;
  readonly overrides: AppOverrides;
  readonly openRow: RowCipher["openRow"];
  /** The identifiers of keys that were secrets before. */
  readonly wereEncrypted: ReadonlySet<string>;
  readonly nowMs: number;
  /** How many rows are listed; the others are only counted. */
  readonly limit: number;
  /** Told after each page how many items were looked at. */
  readonly onPage: (scanned: number) => void;
}

/** Goes through all rows, a page at a time, and says of each that is not read as it is stored what is read instead. */
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

/** A row, and what reads it. */
interface Looked {
  readonly address: RowAddress;
  readonly owner: PartitionOwner;
  /** The key that is read there; `undefined` where nobody declares it. */
  readonly key: RegisteredConfigKey | undefined;
  /** The row that counts there, where it is another: the one that took its place. */
  readonly instead: ConfigRow | undefined;
  /** The row, where it is the one that counts for a key. */
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
  // What was superseded is no value that somebody has set, but what is left of one.
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

/** What is read at the places of rows. */
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

/** Reads rows as the resolver has them, each address once. */
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
