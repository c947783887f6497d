import { createOutbox, type Outbox } from "../events/outbox.ts";
import type { Logger } from "../log/logger.ts";
import { createOnce, type Once, type OnceOptions } from "../once/once.ts";
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
  readonly log: Logger;
}

/** Creates the {@link Runs} of a server. */
export function createRuns({ adapters, log, ...options }: RunsOptions): Runs {
  const once = createOnce({ ...options, store: adapters.claims });
  const bus = async () => (await adapters.messaging.open()).bus;
  const outbox = createOutbox({ store: adapters.outbox, bus, claims: once.claims, clock: options.clock, log });
  return { once, outbox };
}
