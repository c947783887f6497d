import { createHash } from "node:crypto";
import type { IdempotencyConfig } from "@aws-lambda-powertools/idempotency";
import type { ClaimRecord } from "../../parts/once/claim.ts";
import type { Claim } from "../../parts/once/held-claim.ts";

export interface Invocation {
  readonly data: unknown;
  /** Hash of the event at the start, because a function may change its event. */
  readonly hash: string;
  /** Key of the record: the hash, unless a subclass changes it. */
  key: string;
  /** Invocation whose function started this one. */
  readonly outer: Invocation | undefined;
  /** Time at which the function times out, in epoch milliseconds. */
  deadlineMs: number | undefined;
  readonly durable: DurableInvocation | undefined;
  readonly responseHook: IdempotencyConfig["responseHook"];
  fingerprint: string | undefined;
  claim: Claim | undefined;
  /** Record that refused the invocation, unless this process's cache gave the answer. */
  found: ClaimRecord | undefined;
  /** Whether the engine has processed the refusal. In a replay, it runs the function regardless. */
  isRefusalKnown: boolean;
  /**
   * `refused`: another owner has the claim, or the work is done. `held`: has waited and now has the
   * claim; the engine retries. `running`: has the claim, and its function runs.
   */
  state: "claiming" | "refused" | "held" | "running" | "settled";
}

/** Whether the invocation is known to continue an earlier one of its execution. */
export function isReplay({ durable, data }: Invocation): boolean {
  return durable?.replayed !== undefined && Object.is(durable.replayed.event, data);
}

/** If the engine runs the function of an unanswered refusal, the invocation is a replay. */
export function isUnanswered({ state, isRefusalKnown }: Invocation): boolean {
  return state === "refused" && !isRefusalKnown;
}

/**
 * Whether the engine has finished with an invocation. Its next steps, such as storing the result of
 * the outer function, may still run in this invocation's context. After a refusal by work in
 * progress, Middy's middleware still deletes the record, which must not be that of the work.
 */
export function isOver({ state, isRefusalKnown, found }: Invocation): boolean {
  if (state === "refused") return isRefusalKnown && found?.status !== "INPROGRESS";
  return state === "settled";
}

export function mayTakeOver(invocation: Invocation, { owner, execution }: ClaimRecord): boolean {
  const { durable, found } = invocation;
  if (durable === undefined) return isUnanswered(invocation) && found?.owner === owner;
  if (durable.owners.has(owner)) return false;
  // Records of Powertools' layer, and of calls without `durable()`, have no execution.
  return execution === durable.execution || (execution === undefined && isReplay(invocation));
}

export function settle(invocation: Invocation): void {
  invocation.claim?.abandon();
  invocation.claim = undefined;
  invocation.state = "settled";
}

export class AnsweredElsewhere extends Error {
  readonly answer: unknown;

  constructor(answer: unknown) {
    super("another durable execution has done this work");
    this.answer = answer;
  }
}

/** Members of a durable function's context that keelson reads. */
export interface DurableContextLike {
  readonly executionContext: { readonly durableExecutionArn: string };
}

export interface DurableInvocation {
  /** Hash of the execution's long ARN. */
  readonly execution: string;
  /** Event of the call, if this invocation continues an earlier one. */
  readonly replayed: { readonly event: unknown } | undefined;
  /** Owners of this invocation's claims. A duplicate with one of these owners is still running. */
  readonly owners: Set<string>;
}

/** @throws TypeError if `context` is not a durable function's context. */
export function durableInvocation(event: unknown, context: unknown): DurableInvocation {
  // Powertools reads the undeclared `durableExecutionMode` in the same way.
  const given: Partial<DurableContextLike> & { readonly durableExecutionMode?: unknown } =
    Object(context);
  const arn: unknown = given.executionContext?.durableExecutionArn;
  if (typeof arn !== "string" || arn === "")
    throw new TypeError(
      "ClaimLayer: the context has no executionContext.durableExecutionArn; put durable() between withDurableExecution and makeIdempotent",
    );
  return {
    execution: createHash("sha256").update(arn).digest("base64url"),
    replayed: given.durableExecutionMode === "ReplayMode" ? { event } : undefined,
    owners: new Set(),
  };
}
