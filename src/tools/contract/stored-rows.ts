import { frameworkDefault } from "../../parts/config/declare/framework-defaults.ts";
import type { ConfigScope, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { cascade, type Levels } from "../../parts/config/read/cascade.ts";
import { suppliedBy } from "../../parts/config/read/one-level.ts";
import { rowLevels } from "../../parts/config/read/rows.ts";

/** What becomes of a stored row: its number is clamped; it does not fit, and the next level decides; or nobody reads it. */
export type Verdict = "clamped" | "fallback" | "ignored";

/** A stored row that is not read as it is stored. */
export interface StoredVerdict {
  /** As it is stored: of a key that was renamed the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  /** `null` of a row that holds for all tenants. */
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /**
   * The value that is read there instead; `null` where there is none. Of a secret `"(secret)"`, where a computed function decides
   * `"(computed)"`.
   */
  readonly reads: unknown;
}

/** A row as the resolver gets it. */
export type OpenedRow = Levels["rows"][number];

/** Whether rows at a level count for a key: at its own scope, and at every broader one. */
export function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // whoever it is
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/**
 * What becomes of a row for the key that reads it, `undefined` where nobody does; no verdict where it is read as it is stored, or
 * is a secret that does not open.
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

/** What is known of the place of a row beside the row itself. */
export interface Surroundings {
  /** The row, if it counts for the key, and those of broader levels, the narrowest first. */
  readonly rows: readonly OpenedRow[];
  /** The app-boot override of the key. */
  readonly override: unknown;
  /** Whether the key was a secret before. */
  readonly wasEncrypted: boolean;
}

/** What is read at the place of a row, as the report shows it. */
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
