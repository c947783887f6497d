import { frameworkDefault } from "../../parts/config/declare/framework-defaults.ts";
import type { ConfigScope, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { cascade, type Levels, suppliedBy } from "../../parts/config/read/cascade.ts";
import { rowLevels } from "../../parts/config/read/rows.ts";

/** Out of bounds; invalid, so that the next level applies; or read by no key. */
export type Verdict = "clamped" | "fallback" | "ignored";

export interface StoredVerdict {
  /** For a renamed key, this may be the former identifier. */
  readonly key: string;
  readonly scope: ConfigScope;
  readonly tenantId: string | null;
  readonly verdict: Verdict;
  /** `null` without a value, `"(secret)"` for a secret, `"(computed)"` if a function decides. */
  readonly reads: unknown;
}

export type OpenedRow = Levels["rows"][number];

/** Rows apply at the key's scope and at every broader one. */
export function countsAt(key: RegisteredConfigKey, source: OpenedRow["source"]): boolean {
  const owner = { tenantId: "", userId: "" }; // the result does not depend on the owner
  return rowLevels(key.definition.scope, owner).some((level) => level.source === source);
}

/** `undefined` if the row is read as stored, or is a secret that cannot be decrypted. */
export function verdictOf(key: RegisteredConfigKey, row: OpenedRow): Verdict | undefined {
  if (!countsAt(key, row.source)) return "ignored";
  if ("locked" in row.row) return undefined;
  const supplied = suppliedBy(key.definition, { rows: [row], override: undefined }, () => {});
  if (supplied === undefined) return "fallback";
  return "value" in row.row && Object.is(supplied.value, row.row.value) ? undefined : "clamped";
}

/** `rows` begin with the narrowest. */
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
