import { runWithStore } from "../../base/request/ambient.ts";
import type { RunSubject } from "../observe/spans.ts";
import { adoptRequestId } from "./request-id.ts";
import type { Runtime } from "./runtime.ts";
import { type RequestScope, type RunFacts, Scope } from "./scope.ts";

/** Facts that open the scope of a request. */
export interface ScopeFacts extends Omit<RunFacts, "logFields" | "parent"> {
  /** Headers, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Time when the request was received, in milliseconds since the epoch. Default: now. */
  readonly nowMs?: number | undefined;
}

/**
 * Opens the scope of a request: adopts or generates its ID (specification 4.4), and runs `work`
 * with the ambient context.
 */
export function runInScope<Result>(
  runtime: Runtime,
  facts: ScopeFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { headers, nowMs } = facts;
  const { requestId, rejectedLength } = adoptRequestId(
    headers["x-request-id"],
    runtime.newRequestId,
    nowMs,
  );
  const scope = new Scope(runtime, requestId, facts);
  if (runtime.tracing !== undefined) return traced(scope, { nowMs, rejectedLength }, work);
  begin(scope, nowMs, rejectedLength);
  return entered(scope, work);
}

function entered<Result>(
  scope: RequestScope,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  return scope.headers?.["x-keelson-explain"] === "config"
    ? runExplained(scope, work)
    : runWithStore(scope, work);
}

async function runExplained<Result>(
  scope: RequestScope,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { createExplainedReads } = await import("./explained-reads.ts");
  scope.reads = createExplainedReads();
  return runWithStore(scope, work);
}

function begin(scope: Scope, nowMs: number | undefined, rejectedLength: number | undefined): void {
  const { observer, clock } = scope.runtime;
  if (observer !== undefined) {
    scope.startMs = nowMs ?? clock.now();
    observer.began(scope);
  }
  if (rejectedLength !== undefined)
    scope.log.warn("request_id.rejected", { length: rejectedLength });
}

interface TracedBeginning {
  readonly nowMs?: number | undefined;
  readonly rejectedLength?: number | undefined;
  readonly subject?: RunSubject | undefined;
}

/** Opens the scope with a tracer, which is loaded with the first run. */
async function traced<Result>(
  scope: Scope,
  { nowMs, rejectedLength, subject }: TracedBeginning,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { tracing: lazy } = scope.runtime;
  // Safe: only called if there is a tracer.
  const tracing = lazy?.value ?? (await (lazy as NonNullable<typeof lazy>).open());
  const spans = tracing.spansOf(scope, () => scope.origin(), subject);
  scope.spans = spans;
  return spans.within(() => {
    begin(scope, nowMs, rejectedLength);
    return entered(scope, work);
  });
}

/** Facts of a message before its handler runs. */
export interface MessageFacts
  extends Pick<RunFacts, "signal" | "parent">,
    Pick<RequestScope, "requestId" | "user" | "deadlineMs" | "isSystem"> {
  readonly handler: string;
  readonly logFields: Readonly<Record<string, string>>;
  /** Subject of the message, for a tracer. */
  readonly subject?: RunSubject | undefined;
}

/** Opens the scope of a message for one handler, and runs `work` with the ambient context. */
export function runInMessageScope<Result>(
  runtime: Runtime,
  facts: MessageFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const scope = new Scope(runtime, facts.requestId, facts);
  scope.user = facts.user;
  scope.handler = facts.handler;
  scope.isSystem = facts.isSystem;
  if (runtime.tracing !== undefined) return traced(scope, { subject: facts.subject }, work);
  begin(scope, undefined, undefined);
  return runWithStore(scope, work);
}
