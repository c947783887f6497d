import { frameworkDefault } from "../../parts/config/declare/framework-defaults.ts";
import type { ConfigScope, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { cascade, type Levels, suppliedBy } from "../../parts/config/read/cascade.ts";
import { rowLevels } from "../../parts/config/read/rows.ts";

/**
 * Why a row is not read as stored: `clamped` to bounds; invalid, so a `fallback` to the next level;
 * or `ignored`, as no key reads the row.
 */
export type Verdict = "clamped" | "fallback" | "ignored";

export interface StoredVerdict {
  /** For a renamed key, this may be the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /**
   * Value read instead: `null` if there is none, `"(secret)"` for a secret, `"(computed)"` for a
   * computed default.
   */
  readonly reads: unknown;
}

export type OpenedRow = Levels["rows"][number];

/** Whether a key reads rows of this level: its own scope or any broader scope. */
export function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // the result does not depend on the owner
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/**
 * Returns the verdict on a row, or `undefined` if the row is read as stored or is a secret that
 * cannot be decrypted.
 */
export function verdictOf(key: RegisteredConfigKey, row: OpenedRow): Verdict | undefined {
  if (!countsAt(key, row.source)) return "ignored";
  if ("locked" in row.row) return undefined;
  const supplied = suppliedBy(key.definition, { rows: [row], override: undefined }, () => {});
  if (supplied === undefined) return "fallback";
  return "value" in row.row && Object.is(supplied.value, row.row.value) ? undefined : "clamped";
}

/** Returns the value that a key reads. `rows` start with the narrowest scope. */
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
