import { createFairOrder } from "./fair-order.ts";
import type { MessageAttributes } from "./message-attributes.ts";

const deduplicationMs = 5 * 60 * 1000;

export interface NewMessage {
  readonly body: string;
  readonly attributes?: MessageAttributes | undefined;
  readonly group?: string | undefined;
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
  readonly receivedAt?: number;
  readonly receipt?: string;
  /** ARN of the queue that the message was moved from. */
  readonly deadLetterSource?: string;
}

export interface RememberedSend extends Pick<QueueMessage, "id" | "sequence" | "sentAt"> {
  readonly deduplicationId: string;
}

/** Receives each change; a call without `value` is a deletion. */
type Recorder<Value> = (id: string, value?: Value) => void;

export interface Receive {
  readonly max: number;
  readonly visibilityMs: number;
  /** Default: unlimited. */
  readonly maxReceiveCount?: number | undefined;
}

export type Queue = ReturnType<typeof createQueue>;

/**
 * In a FIFO queue, a hidden message blocks later messages of its group. A standard queue is fair to
 * groups.
 */
export function createQueue({
  fifo,
  messages: stored,
  sends,
  createId,
  recordMessage,
  recordSend,
}: {
  fifo: boolean;
  messages: readonly QueueMessage[];
  sends: readonly RememberedSend[];
  createId: () => string;
  recordMessage: Recorder<QueueMessage>;
  recordSend: Recorder<RememberedSend>;
}) {
  const messages = recordedMap(stored, ({ id }) => id, recordMessage);
  const remembered = rememberSends(sends, recordSend);
  const nextSequence = countFrom([...stored, ...sends]);
  const fair = fifo ? undefined : createFairOrder(stored);

  const receivedBy = (receipt: string) => {
    const message = messages.get(String(partsOf(receipt)[0]));
    if (message === undefined) return "missing";
    return message.receipt === receipt ? message : "outdated";
  };

  return {
    send({ delayMs, ...message }: NewMessage, now: number) {
      const { deduplicationId } = message;
      const before = remembered.find(deduplicationId, now);
      if (before !== undefined) return before;
      const sent = { id: createId(), sequence: nextSequence(now), sentAt: now };
      messages.put({ ...message, ...sent, visibleAt: hiddenUntil(now, delayMs), receiveCount: 0 });
      fair?.sent(message, now);
      if (deduplicationId !== undefined) remembered.add({ deduplicationId, ...sent });
      return sent;
    },
    accept(
      { receipt: _receipt, firstReceivedAt: _firstReceivedAt, ...message }: QueueMessage,
      now: number,
    ) {
      messages.put({ ...message, sequence: nextSequence(now), visibleAt: 0, receiveCount: 0 });
      fair?.sent(message, now);
    },
    receive({ max, visibilityMs, maxReceiveCount = Infinity }: Receive, now: number) {
      const taken: QueueMessage[] = [];
      const dead: QueueMessage[] = [];
      const all = messages.values();
      for (const message of fair?.order(all, now) ?? unblocked(all, now)) {
        if (taken.length === max) break;
        if (message.receiveCount >= maxReceiveCount) {
          messages.drop(message);
          dead.push(message);
        } else {
          const received = {
            ...message,
            visibleAt: hiddenUntil(now, visibilityMs),
            receiveCount: message.receiveCount + 1,
            firstReceivedAt: message.firstReceivedAt ?? now,
            receivedAt: now,
            receipt: receiptOf(message.id, createId()),
          };
          messages.put(received);
          taken.push(received);
        }
      }
      return { taken, dead };
    },
    /** By the latest receipt, which in a FIFO queue must not have expired. */
    delete(receipt: string, now: number) {
      const message = receivedBy(receipt);
      if (typeof message === "string") return message;
      if (fifo && message.visibleAt <= now) return "expired";
      messages.drop(message);
      fair?.ended(message, now);
      return "deleted";
    },
    changeVisibility(receipt: string, visibilityMs: number, now: number) {
      const message = receivedBy(receipt);
      if (typeof message === "string") return message;
      if (message.visibleAt <= now) return "visible";
      messages.put({ ...message, visibleAt: hiddenUntil(now, visibilityMs) });
      return "changed";
    },
    remove(fits: (message: QueueMessage) => boolean) {
      const removed = [...messages.values()].filter(fits);
      for (const message of removed) messages.drop(message);
      return removed;
    },
    clear() {
      for (const message of messages.values()) messages.drop(message);
      remembered.clear();
    },
    counts: (now: number) => countsOf([...messages.values()], now),
    nextVisibleAt(now: number) {
      const times = Array.from(messages.values(), ({ visibleAt }) => visibleAt);
      return times.reduce((next, at) => (at > now && at < next ? at : next), Infinity);
    },
  };
}

function countsOf(all: readonly QueueMessage[], now: number) {
  const hidden = all.filter(({ visibleAt }) => visibleAt > now);
  const inFlight = hidden.filter(({ receiveCount }) => receiveCount > 0).length;
  return { visible: all.length - hidden.length, inFlight, delayed: hidden.length - inFlight };
}

/** In the order of sequence numbers. */
function recordedMap<Value extends { readonly sequence: number }>(
  stored: readonly Value[],
  idOf: (value: Value) => string,
  record: Recorder<Value>,
) {
  const inOrder = stored.toSorted((one, other) => one.sequence - other.sequence);
  const values = new Map(inOrder.map((value) => [idOf(value), value]));
  return {
    get: (id: string) => values.get(id),
    values: () => values.values(),
    put(value: Value) {
      values.set(idOf(value), value);
      record(idOf(value), value);
    },
    drop(value: Value) {
      values.delete(idOf(value));
      record(idOf(value));
    },
  };
}

/** 0 without a delay: a caller whose clock is behind has to see the message, too. */
function hiddenUntil(now: number, ms: number) {
  return ms === 0 ? 0 : now + ms;
}

function* unblocked(messages: Iterable<QueueMessage>, now: number) {
  const held = new Set<string | undefined>();
  for (const message of messages) {
    if (held.has(message.group)) continue;
    if (message.visibleAt > now) held.add(message.group);
    else yield message;
  }
}

function countFrom(before: readonly { readonly sequence: number }[]) {
  let last = before.reduce((highest, { sequence }) => Math.max(highest, sequence), 0);
  // An empty queue does not know its last number after a restart, so the clock counts.
  return (now: number) => {
    last = Math.max(last + 1, now * 1000);
    return last;
  };
}

function rememberSends(stored: readonly RememberedSend[], record: Recorder<RememberedSend>) {
  const sends = recordedMap(stored, ({ deduplicationId }) => deduplicationId, record);
  return {
    find(deduplicationId: string | undefined, now: number) {
      for (const send of sends.values()) {
        if (now - send.sentAt < deduplicationMs) break;
        sends.drop(send);
      }
      return deduplicationId === undefined ? undefined : sends.get(deduplicationId);
    },
    add: sends.put,
    clear() {
      for (const send of sends.values()) sends.drop(send);
    },
  };
}

export function isReceipt(text: string) {
  const [messageId, secret, ...more] = partsOf(text);
  return !!messageId && !!secret && more.length === 0 && receiptOf(messageId, secret) === text;
}

function receiptOf(messageId: string, secret: string) {
  return Buffer.from(`${messageId}:${secret}`).toString("base64url");
}

function partsOf(receipt: string) {
  return Buffer.from(receipt, "base64url").toString().split(":");
}
