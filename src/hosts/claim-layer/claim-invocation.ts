import type { IdempotencyConfig } from "@aws-lambda-powertools/idempotency";
import type { ClaimRecord } from "../../parts/once/claim.ts";
import type { Claim } from "../../parts/once/claims.ts";
import type { DurableInvocation } from "./durable-execution.ts";

/**
 * One invocation of a function that Powertools' engine runs, from its claim to its end.
 *
 * | state | |
 * |---|---|
 * | `claiming` | it asks for its claim |
 * | `refused` | another owner has the claim, or the work is done |
 * | `held` | it has waited and has the claim: the engine comes once more |
 * | `running` | it has the claim, and its function runs |
 * | `settled` | it is over |
 */
export interface Invocation {
  readonly data: unknown;
  /** The event's hash when it began: a function may change its event. */
  readonly hash: string;
  /** The record's key: the hash, unless a subclass makes another of it. */
  key: string;
  /** The one within whose function it was begun. */
  readonly outer: Invocation | undefined;
  /** When the function's time is over, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  readonly durable: DurableInvocation | undefined;
  readonly responseHook: IdempotencyConfig["responseHook"];
  fingerprint: string | undefined;
  claim: Claim | undefined;
  /** What refused it; `undefined` also for an answer of this process's cache. */
  found: ClaimRecord | undefined;
  /** Whether the engine took the refusal for one: in a replay it runs the function all the same. */
  isRefusalKnown: boolean;
  state: "claiming" | "refused" | "held" | "running" | "settled";
}

/** Whether it goes on with an earlier invocation of its durable execution, as far as that is known. */
export function isReplay({ durable, data }: Invocation): boolean {
  return durable?.replayed !== undefined && Object.is(durable.replayed.event, data);
}

/** Whether it was refused and the engine ran it anyway: a replay that the layer was not told of. */
export function isUnanswered({ state, isRefusalKnown }: Invocation): boolean {
  return state === "refused" && !isRefusalKnown;
}

/** Whether it may take the place of a claim in progress. */
export function mayTakeOver(invocation: Invocation, { owner, execution }: ClaimRecord): boolean {
  const { durable, found } = invocation;
  if (durable === undefined) return isUnanswered(invocation) && found?.owner === owner;
  if (durable.owners.has(owner)) return false;
  // Powertools' own layer, and calls that are not told apart, leave no execution.
  return execution === durable.execution || (execution === undefined && isReplay(invocation));
}

export function settle(invocation: Invocation): void {
  invocation.claim?.abandon();
  invocation.claim = undefined;
  invocation.state = "settled";
}

/** Another durable execution has done the work: its answer is this one's. */
export class AnsweredElsewhere extends Error {
  readonly answer: unknown;

  constructor(answer: unknown) {
    super("another durable execution has done this work");
    this.answer = answer;
  }
}
