import { randomUUID } from "node:crypto";
import { openJournal } from "../service/journal.ts";
import {
  createQueue,
  type Queue,
  type QueueChange,
  type QueueMessage,
  type RememberedSend,
} from "./queue.ts";
import { type QueueAttributes, type QueueSettings, settingsOf } from "./queue-settings.ts";

export interface StoredQueue {
  readonly name: string;
  readonly attributes: QueueAttributes;
  readonly settings: QueueSettings;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
  readonly messages: Queue;
}

export type QueueStore = ReturnType<typeof openQueueStore>;

type QueueRecord = Pick<StoredQueue, "name" | "attributes" | "createdAt" | "modifiedAt">;
type JournalEntry =
  | { readonly queue: QueueRecord }
  | { readonly of: string; readonly message: QueueMessage }
  | { readonly of: string; readonly send: RememberedSend };

/**
 * Flushed changes survive a restart, with messages in flight and remembered sends.
 * @throws Error if the file is corrupt.
 */
export function openQueueStore(path?: string) {
  const journal = openJournal<JournalEntry>(path);
  const queues = new Map<string, StoredQueue>();

  const recordFor = (name: string) => (change: QueueChange) => {
    if (change.kind === "put")
      journal.put(messageKey(name, change.message.id), { of: name, message: change.message });
    else if (change.kind === "removed") journal.delete(messageKey(name, change.id));
    else if (change.kind === "remembered")
      journal.put(sendKey(name, change.send.deduplicationId), { of: name, send: change.send });
    else journal.delete(sendKey(name, change.deduplicationId));
  };
  const set = (record: QueueRecord, messages: Queue) => {
    const queue = { ...record, settings: settingsOf(record.attributes), messages };
    queues.set(record.name, queue);
    return queue;
  };
  const open = (
    record: QueueRecord,
    messages: readonly QueueMessage[],
    sends: readonly RememberedSend[],
  ) => {
    const { fifo } = settingsOf(record.attributes);
    return set(
      record,
      createQueue({ fifo, messages, sends, createId: randomUUID, record: recordFor(record.name) }),
    );
  };

  for (const entry of journal.opened) {
    if (!("queue" in entry)) continue;
    const { name } = entry.queue;
    const own = journal.opened.filter((other) => "of" in other && other.of === name);
    open(
      entry.queue,
      own.flatMap((other) => ("message" in other ? other.message : [])),
      own.flatMap((other) => ("send" in other ? other.send : [])),
    );
  }

  return {
    get: (name: string) => queues.get(name),
    all: () => [...queues.values()].sort((one, other) => (one.name < other.name ? -1 : 1)),
    create(name: string, attributes: QueueAttributes, now: number) {
      const record = { name, attributes, createdAt: now, modifiedAt: now };
      journal.put(queueKey(name), { queue: record });
      return open(record, [], []);
    },
    configure(
      { name, createdAt, messages }: StoredQueue,
      attributes: QueueAttributes,
      now: number,
    ) {
      const record = { name, attributes, createdAt, modifiedAt: now };
      journal.put(queueKey(name), { queue: record });
      set(record, messages);
    },
    delete({ name, messages }: StoredQueue) {
      messages.clear();
      queues.delete(name);
      journal.delete(queueKey(name));
    },
    flush: () => journal.flush(),
    close: () => journal.close(),
  };
}

function queueKey(name: string): string {
  return `queue/${name}`;
}

function messageKey(name: string, id: string): string {
  return `message/${name}/${id}`;
}

function sendKey(name: string, deduplicationId: string): string {
  return `send/${name}/${deduplicationId}`;
}
