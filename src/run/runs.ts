import { createOutbox, type Outbox } from "../events/outbox.ts";
import type { Logger } from "../log/logger.ts";
import type { Tracing } from "../observe/spans.ts";
import { createOnce, type Once, type OnceOptions } from "../once/once.ts";
import type { Lazy } from "../process/lazy.ts";
import type { Adapters } from "./adapters.ts";

/** What the runs of a server share that have effects. */
export interface Runs {
  /** Does writes, events and jobs once. */
  readonly once: Once;
  /** Dispatches events. */
  readonly outbox: Outbox;
}

/** What {@link Runs} are made of. */
export interface RunsOptions extends Omit<OnceOptions, "store"> {
  readonly adapters: Adapters;
  /** Whether there are jobs, which may be due later. */
  readonly hasJobs: boolean;
  readonly log: Logger;
  /** Makes spans; absent where no tracer has registered itself. */
  readonly tracing: Lazy<Tracing> | undefined;
}

/** Creates the {@link Runs} of a server. */
export function createRuns({ adapters, log, hasJobs, tracing, ...options }: RunsOptions): Runs {
  const once = createOnce({ ...options, store: adapters.claims });
  const bus = async () => {
    const { bus } = await adapters.messaging.open();
    return tracing === undefined ? bus : (await tracing.open()).bus(bus);
  };
  const { claims } = once;
  const { clock, metrics } = options;
  const { outbox: store } = adapters;
  // Loaded with the first sweep: no request needs it.
  const sweepDue = async (signal: AbortSignal | undefined) => {
    const { sweepDueJobs } = await import("../events/due-jobs.ts");
    const jobs = async () => {
      const { jobs } = await adapters.messaging.open();
      return tracing === undefined ? jobs : (await tracing.open()).queue(jobs);
    };
    return sweepDueJobs({ store, due: await adapters.dueJobs.open(), jobs, claims, clock, log, metrics }, signal);
  };
  const outbox = createOutbox({ store, bus, claims, clock, log, metrics, sweepDue: hasJobs ? sweepDue : undefined });
  return { once, outbox };
}
