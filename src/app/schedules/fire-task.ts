import type { Cause } from "../../parts/messages/envelope.ts";
import type { claimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

/** One fire of a schedule, which runs under the claim of its fire time. */
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
  /** Creates the items that record the fire, for the transaction that completes its claim. */
  readonly own: () => readonly TransactionItem[];
}

export type FireOutcome =
  | { readonly kind: "processed" }
  /** The fire was already done. */
  | { readonly kind: "skipped" }
  /** A duplicate is running, for at most `afterMs`. */
  | { readonly kind: "handed-back"; readonly afterMs: number }
  /** The handler failed. The error is logged. */
  | { readonly kind: "failed"; readonly error: unknown };
