import { describeRule } from "../../../base/identity/access.ts";
import { isSealed } from "../../../base/secrets/sealed.ts";
import { defined } from "../../../base/types/defined.ts";
import type { Bounds, ConfigKeyDefinition, ConfigScope, ConfigType } from "../declare/key.ts";
import {
  type ConfigSource,
  type Levels,
  type OnMisfit,
  type Resolved,
  suppliedBy,
  suppliedByComputed,
} from "../read/cascade.ts";
import type { RowValue } from "../read/row-cipher.ts";
import { type ConfigRow, formerPlace, isCurrent, type RowLevel } from "../read/rows.ts";

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

/** Public part of a key's declaration. */
export interface DeclarationView {
  readonly type: ConfigType;
  readonly scope: ConfigScope;
  readonly bounds?: Bounds;
  readonly options?: readonly string[];
  readonly computed: boolean;
  readonly encrypted: boolean;
  readonly allowPerRequest: boolean;
  readonly read: string;
  readonly write: string;
}

interface ExplainedFacts extends Omit<Levels, "rows"> {
  readonly definition: ConfigKeyDefinition;
  readonly rows: readonly { readonly level: RowLevel; readonly row: ConfigRow | undefined }[];
  readonly openRow: (row: ConfigRow, level: RowLevel) => RowValue;
  readonly nowMs: number;
  /** Called only if neither a row nor an override supplies a value. */
  readonly compute: () => Promise<unknown>;
}

interface Candidate {
  readonly facts: Omit<ConfigLevel, "active" | "note">;
  readonly supplied?: Resolved | undefined;
  readonly note?: string | undefined;
}

/** Returns every level in the order of the cascade, and the resolved value (specification 4.1). */
export async function explainLevels(
  facts: ExplainedFacts,
): Promise<Resolved & { readonly levels: readonly ConfigLevel[] }> {
  const { definition, override, frameworkDefault } = facts;
  const candidates = facts.rows.map(({ level, row }) => rowCandidate(facts, level, row));
  candidates.push(
    candidate({ source: "app-override", isSet: override !== undefined, value: override }, (note) =>
      suppliedBy(definition, { rows: [], override }, note),
    ),
  );
  const isDecided = candidates.some((one) => one.supplied !== undefined);
  if (definition.computed !== undefined) candidates.push(await computedCandidate(facts, isDecided));
  const value = definition.default ?? frameworkDefault;
  const isSet = value !== undefined;
  const source = "default";
  candidates.push({
    facts: { source, isSet, value },
    supplied: isSet ? { value, source } : undefined,
  });
  const winner = candidates.find((one) => one.supplied !== undefined);
  return {
    ...(winner?.supplied ?? { value: undefined, source: "missing" }),
    levels: candidates.map((one) => level(definition, one, one === winner)),
  };
}

/** Returns the declaration without the default, which may be a secret. */
export function declarationView(definition: ConfigKeyDefinition): DeclarationView {
  const { type, scope, bounds, options, computed, encrypted, allowPerRequest, read, write } =
    definition;
  return {
    type,
    scope,
    ...defined({ bounds, options }),
    computed: computed !== undefined,
    encrypted,
    allowPerRequest,
    read: describeRule(read),
    write: describeRule(write),
  };
}

function rowCandidate(
  { definition, nowMs, openRow }: ExplainedFacts,
  level: RowLevel,
  row: ConfigRow | undefined,
): Candidate {
  const { source } = level;
  if (row === undefined) return { facts: { source, isSet: false } };
  const { version, updatedAt, updatedBy, reason, deleted, [formerPlace]: place } = row;
  const expiresAt = row.expiresAt === undefined ? undefined : isoTime(row.expiresAt);
  const facts = {
    source,
    ...defined({ formerKey: place?.key }),
    version,
    ...defined({ updatedAt, updatedBy, reason, expiresAt }),
  };
  if (!isCurrent(row, nowMs)) {
    const note = deleted === true ? "it was reset" : "it has expired";
    return { facts: { ...facts, isSet: false }, note };
  }
  const opened = openRow(row, level);
  if ("locked" in opened) {
    // Reading the key fails at this level instead of using another level's secret.
    const note = `it cannot be opened, and reading the key fails: ${opened.locked}`;
    return { facts: { ...facts, isSet: true }, supplied: { value: undefined, source }, note };
  }
  return candidate({ ...facts, isSet: true, value: row.value }, (note) =>
    suppliedBy(definition, { rows: [{ source, row: opened }], override: undefined }, note),
  );
}

async function computedCandidate(
  { definition, compute }: ExplainedFacts,
  isDecided: boolean,
): Promise<Candidate> {
  const source = "computed";
  const facts = { source, isSet: true } as const;
  if (isDecided) return { facts, note: "a level above decides; it was not asked" };
  try {
    const value = await compute();
    return candidate({ source, isSet: value !== undefined, value }, (note) =>
      suppliedByComputed(definition, value, note),
    );
  } catch {
    // `compute` has logged the failure; operators still need to see the other levels.
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
    ...(encrypted || value === undefined || isSealed(value) ? {} : { value }),
    ...stored,
    ...defined({ note }),
  };
}

function isoTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  return Number.isNaN(time.getTime()) ? String(seconds) : time.toISOString();
}
