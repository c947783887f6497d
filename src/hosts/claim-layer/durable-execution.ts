import { createHash } from "node:crypto";

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

export function durableInvocation(event: unknown, context: DurableContextLike): DurableInvocation {
  const { durableExecutionArn } = context.executionContext;
  // Powertools reads this undeclared member in the same way.
  const { durableExecutionMode } = context as { readonly durableExecutionMode?: unknown };
  return {
    execution: createHash("sha256").update(durableExecutionArn).digest("base64url"),
    replayed: durableExecutionMode === "ReplayMode" ? { event } : undefined,
    owners: new Set(),
  };
}

/** @throws TypeError if `context` is not a durable function's context. */
export function assertDurableContext(context: unknown): asserts context is DurableContextLike {
  const arn = (context as Partial<DurableContextLike> | null | undefined)?.executionContext
    ?.durableExecutionArn;
  if (typeof arn !== "string" || arn === "") {
    throw new TypeError(
      "ClaimLayer: the context has no executionContext.durableExecutionArn; put durable() between withDurableExecution and makeIdempotent",
    );
  }
}
