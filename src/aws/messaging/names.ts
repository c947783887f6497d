import { quoted } from "../../base/errors/quoted.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { FairMode } from "../../parts/messages/job-route.ts";
import { isOrdered } from "../../parts/messages/message-queue.ts";

export interface MessagingNames {
  readonly bus: string;
  readonly source: string;
  /** A name or a URL, like `jobs`. */
  readonly events: string;
  readonly jobs: string;
  readonly fairJobs: string;
  /** Of events of others. */
  readonly received: string;
  readonly fairMode: FairMode;
}

export const fairModeVariable = "KEELSON_FAIR_JOBS";

/**
 * Names from `KEELSON_EVENT_BUS`, `KEELSON_EVENT_QUEUE` and `KEELSON_JOB_QUEUE`, by default derived
 * from the prefix of the tables. The queue of `KEELSON_FAIR_JOB_QUEUE` has by default the name of
 * the queue of jobs without `.fifo`. `KEELSON_RECEIVED_QUEUE` names the queue of events of others.
 *
 * @throws Error if `KEELSON_FAIR_JOBS` is not a mode.
 */
export function messagingNames(
  prefix: string,
  variables: Variables,
  otherwise: FairMode = "off",
): MessagingNames {
  const base = prefix.replaceAll(".", "-");
  const jobs = variables["KEELSON_JOB_QUEUE"] || `${base}-jobs.fifo`;
  return {
    bus: variables["KEELSON_EVENT_BUS"] || prefix,
    source: prefix,
    events: variables["KEELSON_EVENT_QUEUE"] || `${base}-events`,
    jobs,
    fairJobs: variables["KEELSON_FAIR_JOB_QUEUE"] || fairName(jobs),
    received: variables["KEELSON_RECEIVED_QUEUE"] || `${base}-received`,
    fairMode: fairModeOf(variables[fairModeVariable] || otherwise),
  };
}

function fairName(jobs: string): string {
  return isOrdered(jobs) ? jobs.slice(0, -".fifo".length) : `${jobs}-fair`;
}

function fairModeOf(given: string): FairMode {
  if (given === "off" || given === "receive" || given === "send") return given;
  throw new Error(`${fairModeVariable} is ${quoted(given)}; use off, receive or send`);
}
