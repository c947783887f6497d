import { randomUUID } from "node:crypto";
import { openJournal } from "../service/journal.ts";
import { byName } from "../service/service.ts";
import { createQueue, type Queue, type QueueMessage, type RememberedSend } from "./queue.ts";
import { type QueueAttributes, type QueueSettings, settingsOf } from "./queue-settings.ts";

interface QueueRecord {
  readonly name: string;
  readonly attributes: QueueAttributes;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
}

export interface StoredQueue extends QueueRecord {
  readonly settings: QueueSettings;
  readonly messages: Queue;
}

export type QueueStore = ReturnType<typeof openQueueStore>;

/** Either a queue, or a message or remembered send of the queue `of`. */
interface JournalEntry {
  readonly queue?: QueueRecord;
  readonly of?: string;
  readonly message?: QueueMessage;
  readonly send?: RememberedSend;
}

/** @throws Error if the file is corrupt. */
export function openQueueStore(path?: string) {
  const journal = openJournal<JournalEntry>(path);
  const queues = new Map<string, StoredQueue>();

  const recorder =
    <Value>(prefix: string, entryOf: (value: Value) => JournalEntry) =>
    (id: string, value?: Value) => {
      if (value === undefined) journal.delete(`${prefix}/${id}`);
      else journal.put(`${prefix}/${id}`, entryOf(value));
    };
  const set = (record: QueueRecord, messages: Queue) => {
    const queue = { ...record, settings: settingsOf(record.attributes), messages };
    queues.set(record.name, queue);
    return queue;
  };
  const open = (record: QueueRecord, own: readonly JournalEntry[]) => {
    const { name: of, attributes } = record;
    const queue = createQueue({
      fifo: settingsOf(attributes).fifo,
      messages: own.flatMap(({ message }) => message ?? []),
      sends: own.flatMap(({ send }) => send ?? []),
      createId: randomUUID,
      recordMessage: recorder(`message/${of}`, (message) => ({ of, message })),
      recordSend: recorder(`send/${of}`, (send) => ({ of, send })),
    });
    return set(record, queue);
  };

  for (const { queue } of journal.opened) {
    if (queue !== undefined)
      open(
        queue,
        journal.opened.filter(({ of }) => of === queue.name),
      );
  }

  return {
    get: (name: string) => queues.get(name),
    all: () => [...queues.values()].sort(byName),
    create(name: string, attributes: QueueAttributes, now: number) {
      const queue = { name, attributes, createdAt: now, modifiedAt: now };
      journal.put(queueKey(name), { queue });
      return open(queue, []);
    },
    configure(
      { name, createdAt, messages }: StoredQueue,
      attributes: QueueAttributes,
      now: number,
    ) {
      const queue = { name, attributes, createdAt, modifiedAt: now };
      journal.put(queueKey(name), { queue });
      set(queue, messages);
    },
    delete({ name, messages }: StoredQueue) {
      messages.clear();
      queues.delete(name);
      journal.delete(queueKey(name));
    },
    flush: journal.flush,
    close: journal.close,
  };
}

function queueKey(name: string) {
  return `queue/${name}`;
}
