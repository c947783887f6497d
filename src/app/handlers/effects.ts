import type { QuotaChange } from "../../parts/limits/quota-change.ts";
import type { EffectOptions, EnqueueOptions, SendOptions, StepOptions } from "./effect-options.ts";

export interface Effects {
  publish(type: string, payload: unknown, options?: EffectOptions): Promise<void>;
  enqueue(
    name: string,
    payload: unknown,
    options?: EnqueueOptions,
  ): Promise<{ readonly jobId: string }>;
  cancelJob(jobId: string): Promise<boolean>;
  deliver(
    channel: string,
    message: unknown,
    options?: SendOptions,
  ): Promise<{ readonly deliveryId: string }>;
  /** Joins a change of a quota's usage to the commit. */
  count(quota: string, change: () => Promise<QuotaChange>): Promise<void>;
  step(name: string, options: StepOptions, call: (key: string) => unknown): Promise<unknown>;
}
