import type { Findings } from "./findings.ts";
import type { Ledger } from "./ledger.ts";
import type { Row } from "./stored.ts";
import type { Tenants } from "./tenants.ts";

/** Numbers that the server's handlers have counted for an entry. */
const effects = ["event", "note", "job"] as const;

/** Compares what handlers have counted with what clients know. */
export function checkEntries(rows: readonly Row[], { entries }: Ledger, findings: Findings): void {
  const counted = new Map<string, number>();
  for (const { kind, entry, amount } of rows)
    if (kind !== undefined) counted.set(`${kind} ${entry}`, Number(amount));
  for (const [id, outcome] of entries) {
    const writes = counted.get(`write ${id}`) ?? 0;
    const others = effects.map((kind) => counted.get(`${kind} ${id}`) ?? 0);
    const what = `${id}: ${writes} writes, ${effects.map((kind, n) => `${others[n]} ${kind}s`).join(", ")}`;
    if (outcome === "accepted" && writes !== 1)
      findings.add("each write that was accepted happened exactly once", what);
    if (outcome === "unknown" && writes > 1)
      findings.add("a write without an answer happened at most once", what);
    if (outcome === "refused" && (writes > 0 || others.some((count) => count > 0)))
      findings.add("a refused write left nothing, and no event", what);
    if (writes > 0 && others.some((count) => count !== 1))
      findings.add("each event and each job of a write happened exactly once", what);
    if (writes === 0 && others.some((count) => count > 0))
      findings.add("no event happened without its write", what);
  }
}

/** A row belongs to one tenant. */
export function checkOwners(rows: readonly Row[], tenants: Tenants, findings: Findings): void {
  for (const row of rows) {
    const text = JSON.stringify(row);
    if (tenants.numbersIn(text).size > 1) findings.add("no row has the IDs of two tenants", text);
  }
}
