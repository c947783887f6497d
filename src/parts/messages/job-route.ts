import { deliveryJob } from "./delivery.ts";
import type { MessageQueue } from "./message-queue.ts";
import { tenantGroup } from "./tenant-group.ts";

/**
 * The steps of a deployment that moves jobs to a fair queue:
 *
 * | mode | reads | sends jobs without an order to |
 * |---|---|---|
 * | `off` | the FIFO queue | the FIFO queue |
 * | `receive` | both queues | the FIFO queue |
 * | `send` | both queues | the fair queue |
 */
export type FairMode = "off" | "receive" | "send";

type SendingQueue = Pick<MessageQueue, "send" | "isFinal">;

export interface JobQueues<Queue = SendingQueue> {
  /** FIFO. */
  readonly jobs: Queue;
  /** Standard. The message group is the tenant. */
  readonly fairJobs: Queue;
  readonly fairMode: FairMode;
}

export interface QueuedJob {
  readonly name: string;
  readonly tenantId: string | undefined;
  /** Equals `deduplicationId` for a job without an order. */
  readonly group: string;
  readonly deduplicationId: string;
  readonly text: string;
}

/**
 * Whether equal jobs merge by their mark. Otherwise the FIFO queue merges them, or the claim of
 * their ID: equal deliveries have the same ID.
 */
export function isMarked(fairMode: FairMode, job: Omit<QueuedJob, "text" | "tenantId">): boolean {
  return fairMode !== "off" && job.group === job.deduplicationId && job.name !== deliveryJob;
}

/** Returns the message's ID. */
export function sendJob(queues: JobQueues, job: QueuedJob): Promise<string> {
  const { text, group, deduplicationId, tenantId } = job;
  return queues.fairMode === "send" && group === deduplicationId
    ? queues.fairJobs.send(text, { group: tenantGroup(tenantId) })
    : queues.jobs.send(text, { group, deduplicationId });
}
