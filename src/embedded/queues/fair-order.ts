/** Share of the messages in flight, or of the processing time, above which a tenant is noisy. */
const noisyShare = 0.1;
const fewestInFlight = 30;
/** Time without a send after which a tenant is quiet, and the window of the processing time. */
const recentMs = 5 * 60_000;
/** Less processing time is too little to compare tenants. SQS calls its thresholds approximate. */
const leastWorkMs = 1_000;

/** Times are in epoch milliseconds. */
interface FairMessage {
  readonly group?: string | undefined;
  readonly sentAt: number;
  readonly visibleAt: number;
  readonly receiveCount: number;
  readonly receivedAt?: number;
}

type Grouped = Pick<FairMessage, "group" | "receivedAt">;

/**
 * The order in which a standard queue delivers, by AWS's "How Amazon SQS fair queues work": quiet
 * tenants first, then noisy ones with few messages in flight. A message group is a tenant, and each
 * message without a group is another. The measures start again with the process.
 */
export function createFairOrder(stored: Iterable<FairMessage>) {
  const sentMs = new Map<string, number>();
  const noisy = new Set<string>();
  const work = createRecentWork();
  const noteSent = (group: string | undefined, now: number) => {
    if (group !== undefined) sentMs.set(group, Math.max(now, sentMs.get(group) ?? 0));
  };
  for (const { group, sentAt } of stored) noteSent(group, sentAt);

  return {
    sent: ({ group }: Grouped, now: number) => noteSent(group, now),
    /** The message was deleted, so its processing has ended. */
    ended: ({ group, receivedAt }: Grouped, now: number) => {
      if (receivedAt !== undefined) work.add(group, Math.max(0, now - receivedAt), now);
    },
    /** Visible messages, in the order of their delivery. */
    order<Message extends FairMessage>(
      messages: Iterable<Message>,
      now: number,
    ): readonly Message[] {
      const { visible, waiting, inFlight, total } = countOf(messages, now);
      for (const [group, at] of sentMs) if (now - at >= recentMs) sentMs.delete(group);
      for (const group of noisy) if (!waiting.has(group) || !sentMs.has(group)) noisy.delete(group);
      const worked = work.until(now);
      for (const group of waiting) {
        const flying = inFlight.get(group) ?? 0;
        const isCrowding = flying >= fewestInFlight && flying > total * noisyShare;
        const isSlow =
          worked.totalMs >= leastWorkMs && worked.of(group) > worked.totalMs * noisyShare;
        if (sentMs.has(group) && (isCrowding || isSlow)) noisy.add(group);
      }
      if (noisy.size === 0) return visible;
      const rankOf = ({ group }: Grouped) =>
        group !== undefined && noisy.has(group) ? 1 + (inFlight.get(group) ?? 0) : 0;
      return visible.toSorted((one, other) => rankOf(one) - rankOf(other));
    },
  };
}

function countOf<Message extends FairMessage>(messages: Iterable<Message>, now: number) {
  const visible: Message[] = [];
  const waiting = new Set<string>();
  const inFlight = new Map<string, number>();
  let total = 0;
  for (const message of messages) {
    const { group, visibleAt, receiveCount } = message;
    if (visibleAt <= now) {
      visible.push(message);
      if (group !== undefined) waiting.add(group);
    } else if (receiveCount > 0) {
      total += 1;
      if (group !== undefined) inFlight.set(group, (inFlight.get(group) ?? 0) + 1);
    }
  }
  return { visible, waiting, inFlight, total };
}

/** Processing time by group within the last {@link recentMs}. */
function createRecentWork() {
  const ended: { readonly group: string; readonly ms: number; readonly at: number }[] = [];
  const byGroup = new Map<string, number>();
  let totalMs = 0;
  let first = 0;
  const change = (group: string, ms: number) => {
    totalMs += ms;
    const left = (byGroup.get(group) ?? 0) + ms;
    if (left === 0) byGroup.delete(group);
    else byGroup.set(group, left);
  };
  return {
    add(group: string | undefined, ms: number, at: number) {
      if (ms === 0) return;
      // No later message belongs to the tenant of a message without a group.
      ended.push({ group: group ?? "", ms, at });
      change(group ?? "", ms);
    },
    until(now: number) {
      for (let one = ended[first]; one !== undefined && now - one.at >= recentMs; ) {
        change(one.group, -one.ms);
        first += 1;
        one = ended[first];
      }
      if (first > 1_000) {
        ended.splice(0, first);
        first = 0;
      }
      return { totalMs, of: (group: string) => byGroup.get(group) ?? 0 };
    },
  };
}
