import { createHash } from "node:crypto";

/** The members of a durable function's context that keelson reads. */
export interface DurableContextLike {
  readonly executionContext: { readonly durableExecutionArn: string };
}

/** One invocation of a durable execution. */
export interface DurableInvocation {
  /** The execution, hashed: its ARN is long. All its invocations have the same. */
  readonly execution: string;
  /** What the function was called with, where this invocation goes on with an earlier one. */
  readonly replayed: { readonly event: unknown } | undefined;
  /** The owners of the claims taken in it: a duplicate within the same invocation is still running. */
  readonly owners: Set<string>;
}

export function durableInvocation(event: unknown, context: DurableContextLike): DurableInvocation {
  const { durableExecutionArn } = context.executionContext;
  const { durableExecutionMode } = context as { readonly durableExecutionMode?: unknown }; // as Powertools reads it
  return {
    execution: createHash("sha256").update(durableExecutionArn).digest("base64url"),
    replayed: durableExecutionMode === "ReplayMode" ? { event } : undefined,
    owners: new Set(),
  };
}

/** @throws TypeError where it is not the context of a durable function. */
export function assertDurableContext(context: unknown): asserts context is DurableContextLike {
  const arn = (context as Partial<DurableContextLike> | null | undefined)?.executionContext
    ?.durableExecutionArn;
  if (typeof arn !== "string" || arn === "") {
    throw new TypeError(
      "ClaimLayer: the context has no executionContext.durableExecutionArn; put durable() between withDurableExecution and makeIdempotent",
    );
  }
}
