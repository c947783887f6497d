import type { ConfigScope, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import {
  cascade,
  frameworkDefault,
  type Levels,
  suppliedBy,
} from "../../parts/config/read/cascade.ts";
import { rowLevels } from "../../parts/config/read/rows.ts";

/**
 * Why a row is not read as stored: the value is out of bounds (`clamped`) or invalid (`fallback` to
 * the next level), or no key reads the row (`ignored`).
 */
export type Verdict = "clamped" | "fallback" | "ignored";

export interface StoredVerdict {
  /** For a renamed key, this may be the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /**
   * Value read instead: `null` if none, `"(secret)"` for a secret, `"(computed)"` if a function
   * computes it.
   */
  readonly reads: unknown;
}

export type OpenedRow = Levels["rows"][number];

/** A key reads rows of its own scope and of any broader scope. */
export function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // the result does not depend on the owner
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/** Returns `undefined` for a row that is read as stored, or a secret that cannot be decrypted. */
export function verdictOf(key: RegisteredConfigKey, row: OpenedRow): Verdict | undefined {
  if (!countsAt(key, row.source)) return "ignored";
  if ("locked" in row.row) return undefined;
  const supplied = suppliedBy(key.definition, { rows: [row], override: undefined }, () => {});
  if (supplied === undefined) return "fallback";
  return "value" in row.row && Object.is(supplied.value, row.row.value) ? undefined : "clamped";
}

/** Returns the value that the key reads. `rows` start with the narrowest scope. */
export function readsOf(
  key: RegisteredConfigKey,
  {
    rows,
    override,
    wasEncrypted,
  }: Omit<Levels, "frameworkDefault"> & { readonly wasEncrypted: boolean },
): unknown {
  const { id, definition } = key;
  if (definition.encrypted || wasEncrypted) return "(secret)";
  const levels = {
    rows: rows.filter(({ source }) => countsAt(key, source)),
    override,
    frameworkDefault: frameworkDefault(id, definition),
  };
  const resolved = cascade(definition, levels, () => {});
  return resolved === "ask-computed" ? "(computed)" : (resolved.value ?? null);
}
