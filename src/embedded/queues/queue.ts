import type { MessageAttributes } from "./message-attributes.ts";

/** How long a FIFO queue knows a deduplication id, from the first send on. */
const deduplicationMs = 5 * 60 * 1000;

/** What is sent. */
export interface NewMessage {
  readonly body: string;
  readonly attributes?: MessageAttributes;
  readonly group?: string;
  /** Sends of one id within 5 minutes are one message. */
  readonly deduplicationId?: string;
  /** How long it stays hidden. */
  readonly delayMs: number;
}

/** A message in a queue. Times are epoch milliseconds. */
export interface QueueMessage extends Omit<NewMessage, "delayMs"> {
  readonly id: string;
  /** Its place in the queue. */
  readonly sequence: number;
  readonly sentAt: number;
  /** From when on it can be received: after its delay or its visibility timeout; 0 where it is not hidden. */
  readonly visibleAt: number;
  readonly receiveCount: number;
  readonly firstReceivedAt?: number;
  /** The receipt handle of the newest receive. */
  readonly receipt?: string;
  /** The ARN of the queue from which it came into this dead-letter queue. */
  readonly deadLetterSource?: string;
}

/** A send that a FIFO queue remembers. */
export interface RememberedSend {
  readonly deduplicationId: string;
  readonly id: string;
  readonly sequence: number;
  readonly sentAt: number;
}

/** A change of a queue, for its store. */
export type QueueChange =
  | { readonly kind: "put"; readonly message: QueueMessage }
  | { readonly kind: "removed"; readonly id: string }
  | { readonly kind: "remembered"; readonly send: RememberedSend }
  | { readonly kind: "forgotten"; readonly deduplicationId: string };

/** How {@link createQueue} begins. */
export interface QueueOptions {
  readonly fifo: boolean;
  readonly messages?: readonly QueueMessage[];
  readonly sends?: readonly RememberedSend[];
  /** Gives an id that is new. */
  createId(): string;
  /** Told of every change. */
  record(change: QueueChange): void;
}

/** How {@link Queue.receive} receives. */
export interface Receive {
  readonly max: number;
  /** For how long nobody else receives what was received. */
  readonly visibilityMs: number;
  /** Messages that were received this often are dead. Absent: none ever is. */
  readonly maxReceiveCount?: number;
}

/** How many messages there are: waiting, in flight and not yet visible for the first time. */
export interface QueueCounts {
  readonly visible: number;
  readonly inFlight: number;
  readonly delayed: number;
}

/** One queue. The caller passes the time. */
export interface Queue {
  /** Adds a message; one whose deduplication id is known is the message that was sent then. */
  send(message: NewMessage, now: number): Pick<QueueMessage, "id" | "sequence">;
  /** Adds a message of another queue, as one that nobody has received. */
  accept(message: QueueMessage, now: number): void;
  /** Takes visible messages, in order; dead ones leave the queue. */
  receive(
    options: Receive,
    now: number,
  ): { readonly taken: readonly QueueMessage[]; readonly dead: readonly QueueMessage[] };
  /** Deletes a message by the receipt handle of its newest receive; of a FIFO queue, while it is in flight. */
  delete(receipt: string, now: number): "deleted" | "missing" | "outdated" | "expired";
  /** Says anew for how long, from now on, a message in flight is nobody else's. */
  changeVisibility(
    receipt: string,
    visibilityMs: number,
    now: number,
  ): "changed" | "missing" | "outdated" | "visible";
  /** Removes the messages that fit. */
  remove(fits: (message: QueueMessage) => boolean): readonly QueueMessage[];
  /** Removes everything, what it remembers too. */
  clear(): void;
  counts(now: number): QueueCounts;
  /** When the next hidden message becomes visible; Infinity where none is hidden. */
  nextVisibleAt(now: number): number;
}

/**
 * Creates a queue, standard or FIFO. In a FIFO queue a message that is in flight or delayed holds up
 * what its group has behind it.
 */
export function createQueue({
  fifo,
  messages: stored = [],
  sends = [],
  createId,
  record,
}: QueueOptions): Queue {
  // In order of their sequence, as a map is in the order of its insertions.
  const messages = new Map(
    [...stored]
      .sort((one, other) => one.sequence - other.sequence)
      .map((message) => [message.id, message]),
  );
  const remembered = new Map(
    [...sends]
      .sort((one, other) => one.sentAt - other.sentAt)
      .map((send) => [send.deduplicationId, send]),
  );
  let lastSequence = [...stored, ...sends].reduce(
    (last, { sequence }) => Math.max(last, sequence),
    0,
  );

  const keep = (message: QueueMessage) => {
    messages.set(message.id, message);
    record({ kind: "put", message });
  };
  const drop = (message: QueueMessage) => {
    messages.delete(message.id);
    record({ kind: "removed", id: message.id });
  };
  // The clock's part makes them grow although a restart with an empty queue forgets the last one.
  const nextSequence = (now: number) => {
    lastSequence = Math.max(lastSequence + 1, now * 1000);
    return lastSequence;
  };
  const forget = (now: number) => {
    for (const { deduplicationId, sentAt } of remembered.values()) {
      if (now - sentAt < deduplicationMs) return;
      remembered.delete(deduplicationId);
      record({ kind: "forgotten", deduplicationId });
    }
  };

  return {
    send({ delayMs, ...message }, now) {
      const { deduplicationId } = message;
      forget(now);
      const before = deduplicationId === undefined ? undefined : remembered.get(deduplicationId);
      if (before !== undefined) return before;
      const id = createId();
      const sequence = nextSequence(now);
      keep({
        ...message,
        id,
        sequence,
        sentAt: now,
        visibleAt: hiddenUntil(now, delayMs),
        receiveCount: 0,
      });
      if (deduplicationId !== undefined) {
        const send = { deduplicationId, id, sequence, sentAt: now };
        remembered.set(deduplicationId, send);
        record({ kind: "remembered", send });
      }
      return { id, sequence };
    },
    accept({ receipt: _receipt, firstReceivedAt: _firstReceivedAt, ...message }, now) {
      keep({
        ...message,
        sequence: nextSequence(now),
        visibleAt: hiddenUntil(now, 0),
        receiveCount: 0,
      });
    },
    receive({ max, visibilityMs, maxReceiveCount = Number.POSITIVE_INFINITY }, now) {
      const taken: QueueMessage[] = [];
      const dead: QueueMessage[] = [];
      const held = new Set<string | undefined>();
      for (const message of messages.values()) {
        if (taken.length === max) break;
        if (fifo && held.has(message.group)) continue;
        if (message.visibleAt > now) {
          held.add(message.group);
        } else if (message.receiveCount >= maxReceiveCount) {
          drop(message);
          dead.push(message);
        } else {
          const received = {
            ...message,
            visibleAt: hiddenUntil(now, visibilityMs),
            receiveCount: message.receiveCount + 1,
            firstReceivedAt: message.firstReceivedAt ?? now,
            receipt: receiptOf(message.id, createId()),
          };
          keep(received);
          taken.push(received);
        }
      }
      return { taken, dead };
    },
    delete(receipt, now) {
      const message = messages.get(messageIdOf(receipt));
      if (message === undefined) return "missing";
      if (message.receipt !== receipt) return "outdated";
      if (fifo && message.visibleAt <= now) return "expired";
      drop(message);
      return "deleted";
    },
    changeVisibility(receipt, visibilityMs, now) {
      const message = messages.get(messageIdOf(receipt));
      if (message === undefined) return "missing";
      if (message.receipt !== receipt) return "outdated";
      if (message.visibleAt <= now) return "visible";
      keep({ ...message, visibleAt: hiddenUntil(now, visibilityMs) });
      return "changed";
    },
    remove(fits) {
      const removed = [...messages.values()].filter(fits);
      for (const message of removed) drop(message);
      return removed;
    },
    clear() {
      for (const message of messages.values()) drop(message);
      for (const deduplicationId of remembered.keys())
        record({ kind: "forgotten", deduplicationId });
      remembered.clear();
    },
    counts(now) {
      const hidden = [...messages.values()].filter(({ visibleAt }) => visibleAt > now);
      const inFlight = hidden.filter(({ receiveCount }) => receiveCount > 0).length;
      return {
        visible: messages.size - hidden.length,
        inFlight,
        delayed: hidden.length - inFlight,
      };
    },
    nextVisibleAt(now) {
      let next = Number.POSITIVE_INFINITY;
      for (const { visibleAt } of messages.values())
        if (visibleAt > now && visibleAt < next) next = visibleAt;
      return next;
    },
  };
}

/** What is not hidden is visible to everybody, also to a caller whose clock is behind the sender's. */
function hiddenUntil(now: number, ms: number): number {
  return ms === 0 ? 0 : now + ms;
}

/** Whether a text has the form of a receipt handle. */
export function isReceipt(text: string): boolean {
  return (
    /^[^:]+:[^:]+$/.test(Buffer.from(text, "base64url").toString()) &&
    receiptOf(...partsOf(text)) === text
  );
}

function receiptOf(messageId: string, secret: string): string {
  return Buffer.from(`${messageId}:${secret}`).toString("base64url");
}

function messageIdOf(receipt: string): string {
  return partsOf(receipt)[0];
}

function partsOf(receipt: string): [messageId: string, secret: string] {
  const [messageId = "", secret = ""] = Buffer.from(receipt, "base64url").toString().split(":");
  return [messageId, secret];
}
