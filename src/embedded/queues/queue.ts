import type { MessageAttributes } from "./message-attributes.ts";
import { messageIdOf, receiptOf } from "./receipt-handle.ts";

/** A FIFO queue deduplicates for this time after the first send. */
const deduplicationMs = 5 * 60 * 1000;

export interface NewMessage {
  readonly body: string;
  readonly attributes?: MessageAttributes | undefined;
  readonly group?: string | undefined;
  /** Sends with the same ID are one message for 5 minutes. */
  readonly deduplicationId?: string | undefined;
  readonly delayMs: number;
}

export interface QueueMessage extends Omit<NewMessage, "delayMs"> {
  readonly id: string;
  readonly sequence: number;
  readonly sentAt: number;
  /** End of the delay or visibility timeout; 0 for a visible message. */
  readonly visibleAt: number;
  readonly receiveCount: number;
  readonly firstReceivedAt?: number;
  readonly receipt?: string;
  /** ARN of the queue that it comes from as a dead letter. */
  readonly deadLetterSource?: string;
}

export interface RememberedSend {
  readonly deduplicationId: string;
  readonly id: string;
  readonly sequence: number;
  readonly sentAt: number;
}

export type QueueChange =
  | { readonly kind: "put"; readonly message: QueueMessage }
  | { readonly kind: "removed"; readonly id: string }
  | { readonly kind: "remembered"; readonly send: RememberedSend }
  | { readonly kind: "forgotten"; readonly deduplicationId: string };

interface QueueOptions {
  readonly fifo: boolean;
  readonly messages?: readonly QueueMessage[];
  readonly sends?: readonly RememberedSend[];
  createId(): string;
  record(change: QueueChange): void;
}

export interface Receive {
  readonly max: number;
  readonly visibilityMs: number;
  /** After this number of receives, a message is dead. Default: never. */
  readonly maxReceiveCount?: number;
}

export interface QueueCounts {
  readonly visible: number;
  readonly inFlight: number;
  readonly delayed: number;
}

export type Queue = ReturnType<typeof createQueue>;

/** In a FIFO queue, a hidden message blocks the later ones of its group. */
export function createQueue({
  fifo,
  messages: stored = [],
  sends = [],
  createId,
  record,
}: QueueOptions) {
  // A Map keeps its insertion order.
  const messages = new Map(
    [...stored]
      .sort((one, other) => one.sequence - other.sequence)
      .map((message) => [message.id, message]),
  );
  const remembered = rememberSends(sends, record);
  const nextSequence = countFrom([...stored, ...sends]);

  const keep = (message: QueueMessage) => {
    messages.set(message.id, message);
    record({ kind: "put", message });
  };
  const drop = (message: QueueMessage) => {
    messages.delete(message.id);
    record({ kind: "removed", id: message.id });
  };
  const receivedBy = (receipt: string): QueueMessage | "missing" | "outdated" => {
    const message = messages.get(messageIdOf(receipt));
    if (message === undefined) return "missing";
    return message.receipt === receipt ? message : "outdated";
  };

  return {
    /** Returns the earlier message for a remembered deduplication ID. */
    send({ delayMs, ...message }: NewMessage, now: number): Pick<QueueMessage, "id" | "sequence"> {
      const { deduplicationId } = message;
      const before = remembered.find(deduplicationId, now);
      if (before !== undefined) return before;
      const sent = { id: createId(), sequence: nextSequence(now), sentAt: now };
      keep({ ...message, ...sent, visibleAt: hiddenUntil(now, delayMs), receiveCount: 0 });
      if (deduplicationId !== undefined) remembered.add({ deduplicationId, ...sent });
      return sent;
    },
    accept(
      { receipt: _receipt, firstReceivedAt: _firstReceivedAt, ...message }: QueueMessage,
      now: number,
    ) {
      keep({ ...message, sequence: nextSequence(now), visibleAt: 0, receiveCount: 0 });
    },
    /** Takes visible messages in order. Dead messages leave the queue. */
    receive({ max, visibilityMs, maxReceiveCount = Infinity }: Receive, now: number) {
      const taken: QueueMessage[] = [];
      const dead: QueueMessage[] = [];
      for (const message of unblocked(messages.values(), fifo, now)) {
        if (taken.length === max) break;
        if (message.receiveCount >= maxReceiveCount) {
          drop(message);
          dead.push(message);
        } else {
          const received = receivedOnce(message, createId(), hiddenUntil(now, visibilityMs), now);
          keep(received);
          taken.push(received);
        }
      }
      return { taken, dead };
    },
    /** Needs the handle of the latest receive; in a FIFO queue, of a message in flight. */
    delete(receipt: string, now: number) {
      const message = receivedBy(receipt);
      if (typeof message === "string") return message;
      if (fifo && message.visibleAt <= now) return "expired";
      drop(message);
      return "deleted";
    },
    changeVisibility(receipt: string, visibilityMs: number, now: number) {
      const message = receivedBy(receipt);
      if (typeof message === "string") return message;
      if (message.visibleAt <= now) return "visible";
      keep({ ...message, visibleAt: hiddenUntil(now, visibilityMs) });
      return "changed";
    },
    remove(fits: (message: QueueMessage) => boolean) {
      const removed = [...messages.values()].filter(fits);
      for (const message of removed) drop(message);
      return removed;
    },
    clear() {
      for (const message of messages.values()) drop(message);
      remembered.clear();
    },
    counts: (now: number) => countsOf([...messages.values()], now),
    nextVisibleAt: (now: number) => nextVisible(messages.values(), now),
  };
}

/** 0 is visible even to a caller whose clock is behind the sender's. */
function hiddenUntil(now: number, ms: number): number {
  return ms === 0 ? 0 : now + ms;
}

function* unblocked(
  messages: Iterable<QueueMessage>,
  fifo: boolean,
  now: number,
): Generator<QueueMessage> {
  const held = new Set<string | undefined>();
  for (const message of messages) {
    if (fifo && held.has(message.group)) continue;
    if (message.visibleAt > now) held.add(message.group);
    else yield message;
  }
}

function receivedOnce(
  message: QueueMessage,
  secret: string,
  visibleAt: number,
  now: number,
): QueueMessage {
  return {
    ...message,
    visibleAt,
    receiveCount: message.receiveCount + 1,
    firstReceivedAt: message.firstReceivedAt ?? now,
    receipt: receiptOf(message.id, secret),
  };
}

function countsOf(messages: readonly QueueMessage[], now: number): QueueCounts {
  const hidden = messages.filter(({ visibleAt }) => visibleAt > now);
  const inFlight = hidden.filter(({ receiveCount }) => receiveCount > 0).length;
  return { visible: messages.length - hidden.length, inFlight, delayed: hidden.length - inFlight };
}

function nextVisible(messages: Iterable<QueueMessage>, now: number): number {
  let next = Infinity;
  for (const { visibleAt } of messages) if (visibleAt > now && visibleAt < next) next = visibleAt;
  return next;
}

function countFrom(before: readonly { readonly sequence: number }[]): (now: number) => number {
  let last = before.reduce((highest, { sequence }) => Math.max(highest, sequence), 0);
  // By the clock, because after a restart an empty queue has forgotten the last one.
  return (now) => {
    last = Math.max(last + 1, now * 1000);
    return last;
  };
}

function rememberSends(stored: readonly RememberedSend[], record: QueueOptions["record"]) {
  const sends = new Map(
    [...stored]
      .sort((one, other) => one.sentAt - other.sentAt)
      .map((send) => [send.deduplicationId, send]),
  );
  const forget = (deduplicationId: string) => {
    sends.delete(deduplicationId);
    record({ kind: "forgotten", deduplicationId });
  };
  return {
    find(deduplicationId: string | undefined, now: number): RememberedSend | undefined {
      for (const send of sends.values()) {
        if (now - send.sentAt < deduplicationMs) break;
        forget(send.deduplicationId);
      }
      return deduplicationId === undefined ? undefined : sends.get(deduplicationId);
    },
    add(send: RememberedSend): void {
      sends.set(send.deduplicationId, send);
      record({ kind: "remembered", send });
    },
    clear(): void {
      for (const deduplicationId of sends.keys()) forget(deduplicationId);
    },
  };
}
