import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import { tenantsInTurn } from "../../parts/messages/tenants-in-turn.ts";

/**
 * Groups messages that must run in sequence. A group of a standard queue is a tenant, and tenants
 * take turns.
 */
export function messageGroups(
  { isOrdered }: Pick<MessageQueue, "isOrdered">,
  messages: readonly QueueMessage[],
): readonly QueueMessage[][] {
  if (isOrdered) return [...Map.groupBy(messages, ({ group }) => group).values()];
  return tenantsInTurn(messages, ({ group }) => group).map((message) => [message]);
}
