import type { CallContext, Input } from "../service/service.ts";
import type { LongPolls } from "./long-polls.ts";
import type { QueueStore, StoredQueue } from "./queue-store.ts";
import { SqsError } from "./sqs-error.ts";
import { requiredText } from "./sqs-input.ts";

export const embeddedAccount = "000000000000";

export interface SqsScope {
  readonly store: QueueStore;
  readonly polls: LongPolls;
  readonly region: string;
  readonly closing: AbortSignal;
}

export function queueOf({ store }: SqsScope, input: Input): StoredQueue {
  const url = requiredText(input, "QueueUrl");
  return existing(store.get(url.slice(url.lastIndexOf("/") + 1)));
}

export function existing(queue: StoredQueue | undefined): StoredQueue {
  if (queue === undefined)
    throw new SqsError("QueueDoesNotExist", "The specified queue does not exist.");
  return queue;
}

export function queueByArn({ store }: SqsScope, arn: string): StoredQueue | undefined {
  return /^arn:aws:sqs:[^:]+:[^:]+:[^:]+$/.test(arn)
    ? store.get(arn.slice(arn.lastIndexOf(":") + 1))
    : undefined;
}

export function arnOf({ region }: SqsScope, { name }: StoredQueue): string {
  return `arn:aws:sqs:${region}:${embeddedAccount}:${name}`;
}

export function urlOf({ endpoint }: CallContext, { name }: StoredQueue): string {
  return `${endpoint}/${embeddedAccount}/${name}`;
}

export function expire({ messages, settings }: StoredQueue, now: number): void {
  messages.remove(({ sentAt }) => sentAt + settings.retentionMs <= now);
}
