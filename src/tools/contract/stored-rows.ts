import { frameworkDefault } from "../../parts/config/declare/framework-defaults.ts";
import type { ConfigScope, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { cascade, type Levels } from "../../parts/config/read/cascade.ts";
import { suppliedBy } from "../../parts/config/read/one-level.ts";
import { rowLevels } from "../../parts/config/read/rows.ts";

/**
 * Fate of a stored row that is not read as stored. `clamped`: its number is out of bounds.
 * `fallback`: its value does not fit, so the next level applies. `ignored`: no key reads it.
 */
export type Verdict = "clamped" | "fallback" | "ignored";

/** Stored row that is not read as stored. */
export interface StoredVerdict {
  /** Key of the stored row. For a renamed key, this may be the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  /** `null` for a row that applies to all tenants. */
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /**
   * Value that is read instead, or `null` if there is no value. `"(secret)"` for a secret,
   * `"(computed)"` if a computed function decides.
   */
  readonly reads: unknown;
}

/** Row as the resolver receives it. */
export type OpenedRow = Levels["rows"][number];

/**
 * Checks whether rows at a level apply to a key. They do at the key's scope and at every broader
 * one.
 */
export function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // the result does not depend on the owner
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/**
 * Returns the verdict on a row for the key that reads it: `ignored` if no key does. Returns
 * `undefined` if the row is read as stored, or is a secret that cannot be decrypted.
 */
export function verdictOf(
  key: RegisteredConfigKey | undefined,
  row: OpenedRow,
): Verdict | undefined {
  if (key === undefined || !countsAt(key, row.source)) return "ignored";
  if ("locked" in row.row) return undefined;
  const supplied = suppliedBy(key.definition, { rows: [row], override: undefined }, () => {});
  if (supplied === undefined) return "fallback";
  return "value" in row.row && Object.is(supplied.value, row.row.value) ? undefined : "clamped";
}

/** Facts about the place of a row, used to resolve the value that is read there. */
export interface Surroundings {
  /** The row, if it applies to the key, and rows of broader levels. Narrowest first. */
  readonly rows: readonly OpenedRow[];
  readonly override: unknown;
  /** Whether the key was encrypted before. */
  readonly wasEncrypted: boolean;
}

/** Returns the value that is read at the place of a row, as the report shows it. */
export function readsOf(
  key: RegisteredConfigKey | undefined,
  { rows, override, wasEncrypted }: Surroundings,
): unknown {
  if (key === undefined) return null;
  const { id, definition } = key;
  if (definition.encrypted || wasEncrypted) return "(secret)";
  const counting = rows.filter(({ source }) => countsAt(key, source));
  const resolved = cascade(
    definition,
    { rows: counting, override, frameworkDefault: frameworkDefault(id, definition) },
    () => {},
  );
  return resolved === "ask-computed" ? "(computed)" : (resolved.value ?? null);
}
