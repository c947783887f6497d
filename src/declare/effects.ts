import type { WriteAnswer } from "../once/answer.ts";
import type { TransactionItem } from "../once/claim-store.ts";
import type { DeliveryAccessor, EnqueueOptions, StepOptions } from "./pipeline-context.ts";

/** What follows from a run: the events that it publishes, the jobs that it enqueues, the messages that it delivers. */
export interface Effects {
  publish(type: string, payload: unknown): Promise<void>;
  enqueue(name: string, payload: unknown, options?: EnqueueOptions): Promise<{ readonly jobId: string }>;
  unschedule(jobId: string): Promise<boolean>;
  deliver: DeliveryAccessor["send"];
  step(name: string, options: StepOptions, call: (key: string) => unknown): Promise<unknown>;
  /** Commits items together with the events so far, and dispatches these. */
  commit(items: readonly TransactionItem[], answer: WriteAnswer): Promise<void>;
  /**
   * Commits the events of a run that came to its end without a commit, and the items of `joining`, which is asked only where
   * something was done; `answer` only where there may be any. Nothing is published any more.
   */
  settle(answer: () => WriteAnswer, joining?: () => Promise<readonly TransactionItem[]>): Promise<void>;
}
