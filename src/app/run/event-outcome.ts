import { isPermanent, PermanentError } from "../../base/errors/errors.ts";
import { inPool } from "../../base/process/pool.ts";
import { neverWaited, type Waited } from "../../parts/messages/waited.ts";
import type { TaskOutcome } from "../schedules/schedules.ts";

/** Worst outcome of an event's consumers. */
export type EventOutcome = TaskOutcome & {
  /** Outcome of each that has run, if any of them waits. */
  readonly consumed?: readonly Consumed[];
  /** Error of the first that failed for the last time while another one waited. */
  readonly reason?: string;
};

export interface Consumed {
  readonly name: string;
  readonly outcome: TaskOutcome;
  /** Whether a later event may run under the same claim, so that the claim is never extended. */
  readonly hasReusableKey: boolean;
}

/** Consumers of one event that run at the same time: the connections of an AWS client. */
const consumersAtOnce = 50;

/**
 * Runs the consumers of an event that its message does not name as finished. Those that have failed
 * for the last time count as failed permanently.
 *
 * @returns the worst outcome, in this order: failed, waiting, handed back, failed permanently,
 * processed, skipped.
 */
export async function consumeBy<Consumer extends { readonly name: string; readonly id?: unknown }>(
  consumers: readonly Consumer[],
  waited: Waited = neverWaited,
  consume: (consumer: Consumer) => Promise<TaskOutcome>,
): Promise<EventOutcome> {
  const { failed = [], done = [], reason = "a consumer has failed" } = waited;
  const finished = new Set([...failed, ...done]);
  const left = consumers.filter(({ name }) => !finished.has(name));
  const consumed = await inPool(left, consumersAtOnce, async (consumer): Promise<Consumed> => {
    const { name, id } = consumer;
    return { name, outcome: await consume(consumer), hasReusableKey: id !== undefined };
  });
  const outcomes = consumed.map(({ outcome }) => outcome);
  const hasFailed = failed.length > 0;
  if (hasFailed) outcomes.push({ kind: "failed", error: new PermanentError(reason) });
  const worst = outcomes.toSorted((one, other) => rank(other) - rank(one))[0] ?? skipped;
  const hasWaiting = outcomes.some(isWaiting);
  return { ...worst, ...(hasWaiting && { consumed }), ...(hasFailed && { reason }) };
}

const skipped: TaskOutcome = { kind: "skipped" };
const ranks = { skipped: 0, processed: 1, "handed-back": 3, failed: 5 } as const;

/** A permanent failure ranks below every outcome that needs a redelivery. */
function rank(outcome: TaskOutcome): number {
  if (isWaiting(outcome)) return 4;
  return outcome.kind === "failed" && isPermanent(outcome.error) ? 2 : ranks[outcome.kind];
}

function isWaiting(
  outcome: TaskOutcome,
): outcome is Extract<TaskOutcome, { readonly kind: "handed-back" }> {
  return outcome.kind === "handed-back" && outcome.mustWait === true;
}

/** Returns the outcome that waits for a limit, of a job or of the consumer that waits the shortest. */
export function waitingOf({ consumed = [], ...outcome }: EventOutcome) {
  const waiting = [outcome, ...consumed.map((one) => one.outcome)].filter(isWaiting);
  return waiting.toSorted((one, other) => one.afterMs - other.afterMs)[0];
}
