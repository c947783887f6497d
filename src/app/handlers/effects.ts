import type { DeliveryAccessor, EnqueueOptions, StepOptions } from "./pipeline-context.ts";

export interface Effects {
  publish(type: string, payload: unknown): Promise<void>;
  enqueue(
    name: string,
    payload: unknown,
    options?: EnqueueOptions,
  ): Promise<{ readonly jobId: string }>;
  unschedule(jobId: string): Promise<boolean>;
  deliver: DeliveryAccessor["send"];
  step(name: string, options: StepOptions, call: (key: string) => unknown): Promise<unknown>;
}
