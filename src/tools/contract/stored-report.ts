import type { AppOverrides } from "../../parts/config/declare/app-overrides.ts";
import {
  type ConfigKeyRegistry,
  type ConfigScope,
  type RegisteredConfigKey,
  successorOf,
} from "../../parts/config/declare/key.ts";
import {
  cascade,
  frameworkDefault,
  type Levels,
  suppliedBy,
} from "../../parts/config/read/cascade.ts";
import { withFormerRows } from "../../parts/config/read/former-rows.ts";
import type { RowCipher } from "../../parts/config/read/row-cipher.ts";
import {
  type ConfigRow,
  type ConfigRowReader,
  formerPlace,
  isCurrent,
  ownerOf,
  type PartitionOwner,
  type RowAddress,
  type RowLevel,
  rowLevels,
} from "../../parts/config/read/rows.ts";

/** Out of bounds, invalid (the next level applies), or read by no key. */
type Verdict = "clamped" | "fallback" | "ignored";

interface StoredVerdict {
  /** For a renamed key, this may be the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /** Instead: `null` for nothing, `"(secret)"`, or `"(computed)"` by a function. */
  readonly reads: unknown;
}

export type StoredReport = Awaited<ReturnType<typeof reportStored>>;

interface StoredRow {
  readonly address: RowAddress;
  readonly row: ConfigRow;
}

interface ReportSources {
  readonly registry: ConfigKeyRegistry;
  readonly pages: AsyncIterable<{ readonly rows: readonly StoredRow[]; readonly scanned: number }>;
  readonly reader: ConfigRowReader;
  readonly overrides: AppOverrides;
  readonly openRow: RowCipher["openRow"];
  readonly wereEncrypted: ReadonlySet<string>;
  readonly nowMs: number;
  readonly limit: number;
  readonly onPage: (scanned: number) => void;
}

/** Rows that are not read as stored, with the value read instead. */
export async function reportStored(sources: ReportSources) {
  const { pages, limit, onPage } = sources;
  const counts = { clamped: 0, fallback: 0, ignored: 0 };
  const stored: StoredVerdict[] = [];
  let [rows, unopened, scanned] = [0, 0, 0]; // `unopened` could not be decrypted
  for await (const page of pages) {
    const looked = await lookedAt(sources, page.rows);
    rows += looked.length;
    unopened += looked.filter(
      ({ opened, verdict }) => verdict === undefined && opened && "locked" in opened.row,
    ).length;
    const found = looked.flatMap(({ verdict, ...one }) => (verdict ? [{ ...one, verdict }] : []));
    for (const { verdict } of found) counts[verdict] += 1;
    stored.push(...(await listed(sources, found.slice(0, limit - stored.length))));
    scanned += page.scanned;
    onPage(scanned);
  }
  const unlisted = counts.clamped + counts.fallback + counts.ignored - stored.length;
  return { stored, counts, rows, unlisted, unopened };
}

interface Looked {
  readonly address: RowAddress;
  readonly owner: PartitionOwner;
  readonly key: RegisteredConfigKey | undefined;
  /** Row of the key's new name, if that applies. */
  readonly instead: ConfigRow | undefined;
  readonly opened: OpenedRow | undefined;
  readonly verdict: Verdict | undefined;
}

async function lookedAt(sources: ReportSources, rows: readonly StoredRow[]) {
  const { registry, nowMs } = sources;
  const current = rows.flatMap(({ address, row }) => {
    const owner = ownerOf(address.partition);
    if (owner === undefined || !isCurrent(row, nowMs)) return [];
    const key = registry.configKeys.get(address.key) ?? successorOf(address.key, registry);
    return [{ address, row, owner, key }];
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
  // A superseded row is a remnant of a rename.
  const ignored = row.renamedTo === undefined ? [{ ...looked, verdict: "ignored" as const }] : [];
  if (key === undefined) return ignored;
  if (key.definition.formerly !== undefined) {
    const instead = counting({ partition: address.partition, key: key.id });
    const counts =
      isCurrent(instead, nowMs) && (instead[formerPlace]?.key ?? key.id) === address.key;
    if (!counts) return ignored.map((one) => ({ ...one, instead }));
  }
  const { source } = owner.levels[0] as RowLevel; // safe cast: every owner has a level
  const opened = { source, row: openRow(row, key.definition, address) };
  return [{ ...looked, opened, verdict: verdictOf(key, opened) }];
}

async function listed(
  sources: ReportSources,
  found: readonly (Looked & { readonly verdict: Verdict })[],
): Promise<readonly StoredVerdict[]> {
  const broader = found.flatMap(({ key, owner }) =>
    key === undefined
      ? []
      : owner.levels
          .slice(1)
          .filter(({ source }) => countsAt(key, source))
          .map(({ partition }) => ({ partition, key: key.id })),
  );
  const rows = await readOnce(sources, broader);
  return found.map((one) => ({
    key: one.address.key,
    scope: one.owner.scope,
    tenantId: one.owner.tenantId ?? null,
    verdict: one.verdict,
    reads: readsOf(sources, one, rows),
  }));
}

type Rows = (address: RowAddress) => ConfigRow | undefined;

async function readOnce(
  { reader, registry }: ReportSources,
  addresses: readonly RowAddress[],
): Promise<Rows> {
  const distinct = new Map(addresses.map((address) => [textOf(address), address]));
  const rows = await withFormerRows(reader, registry).read([...distinct.values()]);
  const found = new Map([...distinct.keys()].map((text, index) => [text, rows[index]]));
  return (address) => found.get(textOf(address));
}

function textOf({ partition, key }: RowAddress) {
  return JSON.stringify([partition, key]);
}

type OpenedRow = Levels["rows"][number];

/** A key reads rows of its scope and of broader scopes. */
function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // the result does not depend on the owner
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/** `undefined` if it is read as stored, or a secret that cannot be decrypted. */
function verdictOf(key: RegisteredConfigKey, row: OpenedRow): Verdict | undefined {
  if (!countsAt(key, row.source)) return "ignored";
  if ("locked" in row.row) return undefined;
  const supplied = suppliedBy(key.definition, { rows: [row], override: undefined }, () => {});
  if (supplied === undefined) return "fallback";
  return "value" in row.row && Object.is(supplied.value, row.row.value) ? undefined : "clamped";
}

function readsOf(
  { overrides, wereEncrypted, openRow, nowMs }: ReportSources,
  { address, owner, key, instead, opened }: Looked,
  rows: Rows,
): unknown {
  if (key === undefined) return null;
  const { id, definition } = key;
  const names = [address.key, id, ...(definition.formerly ?? [])];
  if (definition.encrypted || names.some((name) => wereEncrypted.has(name))) return "(secret)";
  const opens = owner.levels.flatMap(({ source, partition }, index) => {
    if (index === 0 && opened !== undefined) return [opened];
    const place = { partition, key: id };
    const row = index === 0 ? instead : rows(place);
    return isCurrent(row, nowMs) ? [{ source, row: openRow(row, definition, place) }] : [];
  });
  const levels = {
    rows: opens.filter(({ source }) => countsAt(key, source)),
    override: overrides[id],
    frameworkDefault: frameworkDefault(id, definition),
  };
  const resolved = cascade(definition, levels, () => {});
  return resolved === "ask-computed" ? "(computed)" : (resolved.value ?? null);
}
