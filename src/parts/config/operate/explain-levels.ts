import { quoted } from "../../../base/errors/quoted.ts";
import { isSealed } from "../../../base/secrets/sealed.ts";
import { defined } from "../../../base/types/defined.ts";
import type { ConfigKeyDefinition, ConfigScope, ConfigType } from "../declare/key.ts";
import {
  type ConfigSource,
  frameworkDefault,
  type OnMisfit,
  type Resolved,
  suppliedBy,
  suppliedByComputed,
} from "../read/cascade.ts";
import { type ConfigRow, expiryMs, formerPlace, isCurrent, type RowLevel } from "../read/rows.ts";
import type { OperatorSession } from "./operator-session.ts";
import type { TargetKey } from "./target.ts";

/** Configuration key with its current value. */
export interface ConfigItem {
  readonly key: string;
  readonly type: ConfigType;
  readonly scope: ConfigScope;
  /** Current value; absent for a secret, and if no level has a value. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** Whether a secret is set; only for an encrypted key. */
  readonly isSet?: boolean;
  /** Version of the row that supplies the value. */
  readonly version?: number;
}

/** Level of a key's cascade. */
export interface ConfigLevel {
  readonly source: Exclude<ConfigSource, "missing">;
  /** Whether the level has a value: false for a tombstone or an expired row. */
  readonly isSet: boolean;
  /** Whether this level supplies the key's value. */
  readonly active: boolean;
  /** Value of the level; absent for a secret, and if the computed function was not called. */
  readonly value?: unknown;
  /** Former identifier under which the row is still stored, because no write came after it. */
  readonly formerKey?: string;
  /** Version of a row or tombstone; absent if no row was ever written. */
  readonly version?: number;
  /** Time of the write, in ISO 8601. */
  readonly updatedAt?: string;
  /**
   * ID of the writing user. For a system row, only callers who may write it see this field and
   * `reason`.
   */
  readonly updatedBy?: string;
  readonly reason?: string;
  /** Time at which the row expires, in ISO 8601. */
  readonly expiresAt?: string;
  /** Reason why the value is skipped or adjusted. */
  readonly note?: string;
}

export async function explainRows(
  session: OperatorSession,
  key: TargetKey,
  levels: readonly RowLevel[],
  rows: readonly (ConfigRow | undefined)[],
): Promise<ConfigItem & { readonly levels: readonly ConfigLevel[] }> {
  const { id, definition } = key;
  const { type, scope, encrypted } = definition;
  for (const row of rows) if (isSealed(row?.value)) await session.cipher.prepare(row.value.key);
  const nowMs = session.clock.now();
  const override = session.override(id);
  const candidates = levels.map((level, index) =>
    rowCandidate(session, key, level, rows[index], nowMs),
  );
  candidates.push(
    candidate({ source: "app-override", isSet: override !== undefined, value: override }, (note) =>
      suppliedBy(definition, { rows: [], override }, note),
    ),
  );
  const isDecided = candidates.some(({ supplied }) => supplied !== undefined);
  if (definition.computed !== undefined)
    candidates.push(await computedCandidate(session, key, isDecided));
  const value = definition.default ?? frameworkDefault(id, definition);
  const last = { source: "default", value } as const;
  const isSet = value !== undefined;
  candidates.push({ facts: { ...last, isSet }, supplied: isSet ? last : undefined });
  const winner = candidates.find(({ supplied }) => supplied !== undefined);
  return {
    key: id,
    type,
    scope,
    ...defined({ value: encrypted ? undefined : winner?.supplied?.value }),
    source: winner?.facts.source ?? "missing",
    ...(encrypted && { isSet: winner?.facts.isSet === true }),
    ...defined({ version: winner?.facts.version }),
    levels: candidates.map((one) => level(definition, one, one === winner)),
  };
}

interface Candidate {
  readonly facts: Omit<ConfigLevel, "active" | "note">;
  readonly supplied?: Resolved | undefined;
  readonly note?: string | undefined;
}

function rowCandidate(
  session: OperatorSession,
  { id, definition }: TargetKey,
  { source, partition }: RowLevel,
  row: ConfigRow | undefined,
  nowMs: number,
): Candidate {
  if (row === undefined) return { facts: { source, isSet: false } };
  const shown = plain({ ...row, value: isSealed(row.value) ? undefined : row.value });
  const { version, updatedAt, updatedBy, reason, deleted } = shown;
  const { [formerPlace]: place } = row;
  const expiresAt = row.expiresAt === undefined ? undefined : isoTime(row);
  const formerKey = place?.key;
  const facts = {
    source,
    ...defined({ formerKey, version, updatedAt, updatedBy, reason, expiresAt }),
  };
  if (!isCurrent(row, nowMs)) {
    const note = deleted === true ? "it was reset" : "it has expired";
    return { facts: { ...facts, isSet: false }, note };
  }
  const opened = session.cipher.openRow(row, definition, { partition, key: id });
  if ("locked" in opened) {
    // Reading the key fails at this level instead of using another level's secret.
    const note = `it cannot be opened, and reading the key fails: ${opened.locked}`;
    return { facts: { ...facts, isSet: true }, supplied: { value: undefined, source }, note };
  }
  return candidate({ ...facts, isSet: true, value: shown.value }, (note) =>
    suppliedBy(definition, { rows: [{ source, row: opened }], override: undefined }, note),
  );
}

async function computedCandidate(
  session: OperatorSession,
  { id, definition }: TargetKey,
  isDecided: boolean,
): Promise<Candidate> {
  const source = "computed";
  const facts = { source, isSet: true } as const;
  if (isDecided) return { facts, note: "a level above decides; it was not asked" };
  try {
    const value = await session.computed.read(id, undefined, (node) =>
      definition.computed?.(session.contextFor(node)),
    );
    return candidate({ source, isSet: value !== undefined, value: shownValue(value) }, (note) =>
      suppliedByComputed(definition, value, note),
    );
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    session.log.warn("config.computed_failed", { key: id, message });
    // Operators still need to see the other levels.
    const note = "the computed function failed";
    return { facts, supplied: { value: undefined, source }, note };
  }
}

function candidate(
  facts: Candidate["facts"],
  supply: (onMisfit: OnMisfit) => Resolved | undefined,
): Candidate {
  let note: string | undefined;
  const supplied = supply(({ reason }) => {
    note = reason;
  });
  return { facts, supplied, note };
}

function level(
  { encrypted }: ConfigKeyDefinition,
  { facts, note }: Candidate,
  active: boolean,
): ConfigLevel {
  const { source, isSet, value, ...stored } = facts;
  return {
    source,
    isSet,
    active,
    ...(encrypted || value === undefined ? {} : { value }),
    ...stored,
    ...defined({ note }),
  };
}

/** DynamoDB's client reads numbers above 2^53 as bigints, which JSON does not have. */
function plain<Found>(found: Found): Found {
  const text = JSON.stringify(found, (_name, value: unknown) =>
    typeof value === "bigint" ? Number(value) : value,
  );
  return JSON.parse(text) as Found; // safe: it is shown as JSON
}

/** Absent if JSON cannot show it: a computed function may return anything. */
function shownValue(value: unknown): unknown {
  try {
    return plain(value);
  } catch {
    return undefined;
  }
}

function isoTime(row: ConfigRow): string {
  const time = new Date(expiryMs(row));
  return Number.isNaN(time.getTime()) ? quoted(row.expiresAt) : time.toISOString();
}
