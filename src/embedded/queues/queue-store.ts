import { randomUUID } from "node:crypto";
import { openJournal } from "../service/journal.ts";
import { byName } from "../service/service.ts";
import { createQueue, type Queue, type QueueMessage, type RememberedSend } from "./queue.ts";
import { type QueueAttributes, type QueueSettings, settingsOf } from "./queue-settings.ts";

/** Times are in epoch milliseconds. */
interface QueueRecord {
  readonly name: string;
  readonly attributes: QueueAttributes;
  readonly createdAt: number;
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
    (kind: "message" | "send", of: string) =>
    (id: string, value?: QueueMessage | RememberedSend) => {
      const key = `${kind}/${of}/${id}`;
      if (value === undefined) journal.delete(key);
      else journal.put(key, { of, [kind]: value });
    };
  const set = (record: QueueRecord, messages: Queue) => {
    const queue = { ...record, settings: settingsOf(record.attributes), messages };
    queues.set(record.name, queue);
    return queue;
  };
  const open = (record: QueueRecord, own: readonly JournalEntry[]) => {
    const { name, attributes } = record;
    const queue = createQueue({
      fifo: settingsOf(attributes).fifo,
      messages: own.flatMap(({ message }) => message ?? []),
      sends: own.flatMap(({ send }) => send ?? []),
      createId: randomUUID,
      recordMessage: recorder("message", name),
      recordSend: recorder("send", name),
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
      journal.put(`queue/${name}`, { queue });
      return open(queue, []);
    },
    configure(
      { name, createdAt, messages }: StoredQueue,
      attributes: QueueAttributes,
      now: number,
    ) {
      const queue = { name, attributes, createdAt, modifiedAt: now };
      journal.put(`queue/${name}`, { queue });
      set(queue, messages);
    },
    delete({ name, messages }: StoredQueue) {
      messages.clear();
      queues.delete(name);
      journal.delete(`queue/${name}`);
    },
    flush: journal.flush,
    close: journal.close,
  };
}
