import { hash } from "node:crypto";
import type { ReceiverDeclaration } from "../../app/handlers/receiver.ts";
import { longestMessageMs } from "../../parts/once/claim.ts";

/** Receives before a message moves to the dead-letter queue, in queues that keelson creates. */
export const maxReceives = 5;
/** Time for which a created queue on AWS keeps messages that nothing reads. SQS's default is four days. */
export const queueSeconds = 7 * 24 * 3_600;
/** Time for which a dead-letter queue keeps its messages: the longest that SQS allows. */
export const deadLetterSeconds = longestMessageMs / 1_000;

/** Longest name without `-events`: EventBridge accepts 64 characters. */
const mostOfName = 57;

/** Rule that routes a server's events from the bus to their queue. */
export function eventRule(source: string) {
  return {
    name: `${source.replaceAll(".", "-").slice(0, mostOfName)}-events`,
    pattern: { source: [source] },
    targetId: "events",
  };
}

export type ReceivedRule = ReturnType<typeof receivedRule>;

/**
 * Rules that route events of others to their queue, one for each kind of event: a single rule would
 * match every source with every type, and two that match would deliver an event twice.
 * @param queue - name of the queue, which differs in each stage, as the names of rules have to.
 */
export function receivedRules(
  receivers: Iterable<ReceiverDeclaration>,
  queue: string,
): readonly ReceivedRule[] {
  const rules = [...receivers].map((receiver) => receivedRule(receiver, queue));
  return [...new Map(rules.map((rule) => [rule.id, rule])).values()];
}

/** A rule's name consists of the queue's name and a suffix, and has at most 64 characters. */
const longestStart = 64 - "-12345678".length;

function receivedRule({ bus, source, detailType }: ReceiverDeclaration, queue: string) {
  const id = hash("sha256", JSON.stringify([bus, source, detailType])).slice(0, 8);
  return {
    id,
    bus,
    source,
    detailType,
    name: `${queue.slice(0, longestStart)}-${id}`,
    pattern: { source: [source], "detail-type": [detailType] },
    targetId: "received",
  };
}
