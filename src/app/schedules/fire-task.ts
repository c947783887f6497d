import type { Cause } from "../../parts/messages/envelope.ts";
import type { claimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

/** One scheduled run, under the claim of its time. */
export interface FireTask {
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
  /** Returns items that record the run, for the transaction that completes its claim. */
  readonly own: () => readonly TransactionItem[];
}

/** Outcome of one task: a consumer's run, a job, or a run of a schedule. */
export type TaskOutcome =
  | { readonly kind: "processed" }
  | { readonly kind: "skipped" }
  /** A duplicate is running, for at most `afterMs` milliseconds. */
  | { readonly kind: "handed-back"; readonly afterMs: number }
  | { readonly kind: "failed"; readonly error: unknown };
