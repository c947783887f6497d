import type { Lazy } from "../../base/process/lazy.ts";

/** Delay before a failed message is retried, by number of receives, in milliseconds. */
export const backoffMs = Object.freeze([1_000, 5_000, 20_000, 60_000, 120_000] as const);

export interface QueueMessage {
  readonly id: string;
  readonly body: string;
  /** Handle to acknowledge the message or return it to the queue. */
  readonly receipt: string;
  /**
   * Message group, if any. Its messages arrive in order if the queue {@link isOrdered}. In other
   * queues, groups only make the delivery fair.
   */
  readonly group: string | undefined;
  /** Number of receives, including this one. */
  readonly receives: number;
  /**
   * Time of sending by the queue's clock, in epoch milliseconds; `undefined` if the queue did not
   * report it.
   */
  readonly sentMs: number | undefined;
}

/**
 * Whether a queue keeps the order of a group, by its name or ARN. SQS requires `.fifo` at the end
 * for FIFO queues and forbids it for others.
 */
export function isOrdered(nameOrArn: string): boolean {
  return nameOrArn.endsWith(".fifo");
}

/** Message queue with at-least-once delivery. */
export interface MessageQueue {
  readonly name: string;
  /** Whether an instrumentation of the queue's client creates spans. Default `false`. */
  readonly isTraced?: boolean;
  /**
   * Kind of messages in the queue; other messages are refused. If it is unknown (`undefined`), both
   * kinds are accepted.
   */
  readonly holds: "events" | "jobs" | undefined;
  url(): Promise<string>;
  /**
   * Sends a message.
   * @returns the ID of the message. A duplicate within 5 minutes gets the ID of the first message.
   */
  send(
    body: string,
    options: { readonly group: string; readonly deduplicationId: string },
  ): Promise<string>;
  /** Whether this error means that the queue will never accept the message. */
  isFinal(error: unknown): boolean;
  /**
   * Receives up to ten available messages. They are hidden from other consumers for 30 s, or until
   * they are returned.
   */
  receive(): Promise<readonly QueueMessage[]>;
  remove(receipt: string): Promise<void>;
  /**
   * Sets how long a received message stays invisible, in milliseconds from now. `0` returns it to
   * the queue immediately.
   */
  changeVisibility(receipt: string, forMs: number): Promise<void>;
  /**
   * Returns the number of receives after which a message moves to the dead-letter queue;
   * `undefined` without such a queue.
   */
  maxReceives(): Promise<number | undefined>;
  /**
   * Longest time from a message's first delivery to its last, in milliseconds, if each retry waits
   * as long as {@link backoffMs} allows. Never fails. If the queue does not report it, this is the
   * longest time that SQS keeps a message.
   */
  readonly redeliveryMs: Lazy<number>;
  /**
   * Moves a message to the dead-letter queue and acknowledges it. Returns `false` if there is no
   * dead-letter queue.
   */
  deadLetter(message: QueueMessage): Promise<boolean>;
  size(): Promise<{ readonly visible: number; readonly hidden: number }>;
}
