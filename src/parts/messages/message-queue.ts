import type { Lazy } from "../../base/process/lazy.ts";

/** Delay before a failed message is retried, by number of receives, in milliseconds. */
export const backoffMs = Object.freeze([1_000, 5_000, 20_000, 60_000, 120_000] as const);

export interface QueueMessage {
  readonly id: string;
  readonly body: string;
  /** Acknowledges the message or returns it to the queue. */
  readonly receipt: string;
  /** Only an ordered queue keeps the order of a group; elsewhere, groups serve fairness. */
  readonly group: string | undefined;
  readonly receives: number;
  /** Time of sending by the queue's clock, in epoch milliseconds, if the queue reports it. */
  readonly sentMs: number | undefined;
}

/**
 * Whether a queue keeps the order of a group, by its name or ARN. SQS requires `.fifo` at the end
 * for FIFO queues and forbids it for others.
 */
export function isOrdered(nameOrArn: string): boolean {
  return nameOrArn.endsWith(".fifo");
}

export interface MessageQueue {
  readonly name: string;
  /** Whether it keeps the order of a group. */
  readonly isOrdered: boolean;
  readonly isTraced?: boolean;
  /**
   * Other messages are refused. Messages in a queue of `others` never count as messages of this
   * server. If it is unknown (`undefined`), events and jobs are accepted.
   */
  readonly holds: "events" | "jobs" | "others" | undefined;
  url(): Promise<string>;
  /**
   * Returns the message's ID. On an ordered queue, which needs a `deduplicationId`, a duplicate
   * within 5 minutes gets the ID of the first message.
   */
  send(
    body: string,
    options: { readonly group: string; readonly deduplicationId?: string | undefined },
  ): Promise<string>;
  /** Sends to a queue without order, with a delay of at most 15 minutes. */
  sendLater(body: string, group: string | undefined, afterMs: number): Promise<void>;
  isFinal(error: unknown): boolean;
  /** Receives up to ten messages. Others do not see them for 30 s, or until they are returned. */
  receive(): Promise<readonly QueueMessage[]>;
  remove(receipt: string): Promise<void>;
  /** Hides a received message until `forMs` from now. `0` returns it to the queue immediately. */
  changeVisibility(receipt: string, forMs: number): Promise<void>;
  /** Receives before a message moves to the dead-letter queue; `undefined` without such a queue. */
  maxReceives(): Promise<number | undefined>;
  /**
   * Longest time from a message's first delivery to its last, in milliseconds, if each retry waits
   * as long as {@link backoffMs} allows. Never fails. If the queue does not report it, this is the
   * longest time that SQS keeps a message.
   */
  readonly redeliveryMs: Lazy<number>;
  /**
   * Moves the message to the dead-letter queue, with the error of its last attempt. Returns `false`
   * without such a queue.
   */
  deadLetter(message: QueueMessage, reason: string): Promise<boolean>;
  size(): Promise<{ readonly visible: number; readonly hidden: number }>;
}
