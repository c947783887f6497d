import type { CancellationReason, ClaimCommit, TransactionItem } from "./claim-store.ts";

/** An item of keelson's own that tries again if its condition fails. */
export interface Contested {
  readonly item: TransactionItem;
  /** Returns the item for the next attempt. @throws why the commit fails. */
  again(): Promise<Contested>;
}

/** Maximum number of attempts: other commits change contested items as well. */
export const maxContests = 25;

interface Renewed {
  readonly transaction: ClaimCommit;
  readonly contested: readonly Contested[];
}

/**
 * Replaces the contested items whose conditions failed. They are the last items of the transaction.
 *
 * @returns `undefined` if none failed.
 */
export async function renewed(
  transaction: ClaimCommit,
  contested: readonly Contested[],
  reasons: readonly CancellationReason[],
): Promise<Renewed | undefined> {
  const from = transaction.items.length - contested.length;
  const failed = (index: number) => reasons[from + index]?.code === "ConditionalCheckFailed";
  if (!contested.some((_, index) => failed(index))) return undefined;
  const next = await Promise.all(
    contested.map((one, index) => (failed(index) ? one.again() : one)),
  );
  const items = [...transaction.items.slice(0, from), ...next.map(({ item }) => item)];
  return { transaction: { ...transaction, items, token: crypto.randomUUID() }, contested: next };
}
