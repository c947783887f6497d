/** A message as a queue hands it out. */
export interface QueueMessage {
  readonly id: string;
  readonly body: string;
  /** What it is acknowledged or handed back with. */
  readonly receipt: string;
  /** Messages of one group come in their order where the queue {@link isOrdered}; elsewhere it makes the queue fair, or is absent. */
  readonly group: string | undefined;
  /** How often it was received, this time included. */
  readonly receives: number;
  /** When it was sent, in milliseconds since the epoch, by the queue's clock; `undefined` where the queue did not say. */
  readonly sentMs: number | undefined;
}

/** Whether a queue keeps the order of a group, by its name or ARN: SQS has every FIFO queue end in `.fifo`, and no other. */
export function isOrdered(nameOrArn: string): boolean {
  return nameOrArn.endsWith(".fifo");
}

/** A queue of messages: at least once each. */
export interface MessageQueue {
  /** The name, for people. */
  readonly name: string;
  /** Whether an instrumentation of its client makes spans. Default `false`. */
  readonly isTraced?: boolean;
  /** What it holds: other messages in it are refused. `undefined` where that is not known, so that both are taken. */
  readonly holds: "events" | "jobs" | undefined;
  /** The address, for who polls it. */
  url(): Promise<string>;
  /** @returns the ID of the message: that of the first where it is one of the last 5 minutes. */
  send(
    body: string,
    options: { readonly group: string; readonly deduplicationId: string },
  ): Promise<string>;
  /** Whether the queue will never take a message that it has answered with this error. */
  isFinal(error: unknown): boolean;
  /** At most ten messages that are there; hidden from others until they are handed back, for 30 s at most. */
  receive(): Promise<readonly QueueMessage[]>;
  /** Acknowledges a message. */
  remove(receipt: string): Promise<void>;
  /** Sets how long a received message stays invisible, in milliseconds from now; `0` hands it back at once. */
  changeVisibility(receipt: string, forMs: number): Promise<void>;
  /** After how many receives a message goes to the dead-letter queue; `undefined` where it never does. */
  maxReceives(): Promise<number | undefined>;
  /**
   * The longest time from a message's first delivery to its last, in milliseconds, where a retry waits for `pauseMs` at most.
   * Never throws: where the queue does not say, it is the longest time that SQS keeps a message.
   */
  redeliveryMs(pauseMs: number): Promise<number>;
  /** Moves a message to the dead-letter queue, and acknowledges it; `false` where there is none. */
  deadLetter(message: QueueMessage): Promise<boolean>;
  /** How many messages are there, and how many of them are hidden. */
  size(): Promise<{ readonly visible: number; readonly hidden: number }>;
}
