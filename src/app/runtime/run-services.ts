import type { Logger } from "../../base/log/logger.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import type { DueJobsOptions } from "../../parts/messages/due-jobs.ts";
import { createOutbox, type Outbox } from "../../parts/messages/outbox.ts";
import type { OutboxRow, SweepReports, SweepStops } from "../../parts/messages/outbox-store.ts";
import { createOnce, type Once, type OnceOptions } from "../../parts/once/once.ts";
import type { Tracing } from "../observe/tracing.ts";
import type { Adapters } from "./adapters.ts";

export interface RunServices {
  readonly once: Once;
  readonly outbox: Outbox;
  /** Sends committed jobs. Never throws: the sweep sends a job that cannot be sent. */
  sendCommitted(rows: readonly OutboxRow[]): Promise<void>;
}

export interface RunServicesOptions extends Omit<OnceOptions, "store"> {
  readonly adapters: Adapters;
  readonly hasJobs: boolean;
  readonly log: Logger;
  /** Absent if no tracer is registered. */
  readonly tracing: Lazy<Tracing> | undefined;
}

export function createRunServices({
  adapters,
  log,
  hasJobs,
  tracing,
  ...options
}: RunServicesOptions): RunServices {
  const once = createOnce({ ...options, store: adapters.claims });
  const { claims } = once;
  const { clock, metrics } = options;
  const { outbox: store, messaging } = adapters;
  const bus = async () => {
    const { bus } = await messaging.open();
    return (await tracing?.open())?.bus(bus) ?? bus;
  };
  const jobs = async () => {
    const { jobs, fairJobs, fairMode } = await messaging.open();
    const traced = await tracing?.open();
    if (traced === undefined) return { jobs, fairJobs, fairMode };
    return { jobs: traced.queue(jobs), fairJobs: traced.queue(fairJobs), fairMode };
  };
  const stops: SweepStops = new Map();
  const due: DueJobsOptions["due"] = {
    // The store of due jobs is opened only by a sweep that finds a job.
    begin: async (place) => (await adapters.dueJobs.open()).begin(place),
  };
  const equalJobs = () => adapters.equalJobs.open();
  const sending = { store, due, jobs, equalJobs, claims, stops, clock, log, metrics };
  // Loaded with the first sweep: no request needs it.
  const sweepDue = async (signal: AbortSignal | undefined, reports: SweepReports) => {
    const { sweepDueJobs } = await import("../../parts/messages/due-jobs.ts");
    return sweepDueJobs(sending, signal, reports);
  };
  const outbox = createOutbox({
    ...{ store, bus, claims, clock, log, metrics, stops },
    sweepDue: hasJobs ? sweepDue : undefined,
  });
  return {
    once,
    outbox,
    sendCommitted: async (rows) => {
      const { sendCommitted } = await import("../../parts/messages/due-jobs.ts");
      await sendCommitted(sending, rows);
    },
  };
}
