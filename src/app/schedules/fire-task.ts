import type { Cause } from "../../parts/messages/envelope.ts";
import type { claimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

/** One fire, which runs under the claim of its time. */
export interface FireTask {
  /** Namespace and ID that its claim's key is built from. */
  readonly claimed: Parameters<typeof claimKey>;
  readonly handler: string;
  readonly cause: Cause;
  readonly isSystem: true;
  readonly id: string;
  readonly logFields: Readonly<Record<string, string>>;
  readonly logPrefix: "schedule";
  readonly kind: "schedule";
  readonly facts: () => { readonly attempt?: number | undefined; readonly sinceMs: number };
  readonly deadlineMs: number | undefined;
  readonly run: (ctx: PipelineContext) => unknown;
  /** Items that record the fire, for the transaction that completes its claim. */
  readonly own: () => readonly TransactionItem[];
}

export type FireOutcome =
  | { readonly kind: "processed" }
  /** Done before. */
  | { readonly kind: "skipped" }
  /** A duplicate runs, for at most `afterMs`. */
  | { readonly kind: "handed-back"; readonly afterMs: number }
  /** The error is logged. */
  | { readonly kind: "failed"; readonly error: unknown };
