import { anonymous, type User } from "../../base/identity/user.ts";
import type { Logger } from "../../base/log/logger.ts";
import { LateContext } from "../../base/log/server-logger.ts";
import {
  type AmbientContext,
  type AmbientStore,
  runWithStore,
} from "../../base/request/ambient.ts";
import { incomingSpan, RunTrace, type SpanContext, type Trace } from "../../base/request/trace.ts";
import type { ObservedRun } from "../observe/run-observer.ts";
import type { AskedRequest, Origin, RunSpans, RunSubject } from "../observe/spans.ts";
import type { ExplainedReads } from "./explained-reads.ts";
import { adoptRequestId } from "./request-id.ts";
import type { Runtime } from "./runtime.ts";

/** One request or message on its way through: its ambient store, and what is known of it so far. */
export interface RequestScope extends AmbientStore, ObservedRun {
  readonly runtime: Runtime;
  readonly requestId: string;
  /** Aborts when the caller is gone, or the time is over. */
  readonly signal: AbortSignal | undefined;
  /**
   * What the handler, and the ambient context, have as their signal: the caller's, or that of a run that callers share, which
   * aborts when the last of them is gone.
   */
  runSignal: AbortSignal | undefined;
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** The one tenant whose work this process does: Lambda's tenant isolation names it with each invocation. */
  readonly isolatedTo: string | undefined;
  /** As they were received: names in lower case. Absent for a message. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Whether middlewares of the application stand between the host and the handler. */
  hasMiddlewares: boolean;
  /** The full name of the handler that answers, once it is known. */
  handler: string | undefined;
  route: string | undefined;
  isReplayed: boolean;
  /** Whose request it is, once that is known; the ambient context and the log have it from here. */
  user: User;
  /** Notes which configuration is read, where the request asks for it. */
  reads: ExplainedReads | undefined;
  /** What lines of a message carry beside the usual: its IDs. */
  readonly logFields: Readonly<Record<string, string>> | undefined;
  /** The handlers whose results did not fit and were sent all the same; absent until there is one. */
  misfits: Set<string> | undefined;
  /** Whether its sender had to say who they are, and has: the trace of such a request is joined, unless the server's options say otherwise. */
  isIdentified: boolean;
  /** Whether the run is the system's: of no tenant, and neither a request nor what one has led to. */
  isSystem: boolean;
  /** Decided when it is first asked for, and the same from then on. */
  readonly trace: Trace & { readonly spanId?: string };
  /** The request as its host has received it, once the pipeline has it. */
  asked: AskedRequest | undefined;
  /** Absent where no tracer has registered itself. */
  readonly spans: RunSpans | undefined;
  /** Carries `requestId` and `trace_id`, and `handler`, `tenantId` and `userId` once they are known. */
  readonly log: Logger;
}

/** What the scope of a request is opened with. */
export interface ScopeFacts {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs?: number | undefined;
  /** The one tenant whose work this process does. */
  readonly isolatedTo?: string | undefined;
  /** When it was received, in milliseconds since the epoch. Default: now. */
  readonly nowMs?: number | undefined;
}

/**
 * Opens the scope of a request: adopts or makes its ID (specification 4.4) and runs `work`
 * with the ambient context.
 */
export function runInScope<Result>(
  runtime: Runtime,
  { headers, signal, deadlineMs, isolatedTo, nowMs }: ScopeFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { requestId, rejectedLength } = adoptRequestId(
    headers["x-request-id"],
    runtime.newRequestId,
    nowMs,
  );
  const scope = new Scope(runtime, requestId, headers, signal, deadlineMs, isolatedTo);
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

/** What a traced run begins with. */
interface TracedBeginning {
  readonly nowMs?: number | undefined;
  readonly rejectedLength?: number | undefined;
  readonly subject?: RunSubject | undefined;
}

/** The same, for a tracer: it is loaded with the first run. */
async function traced<Result>(
  scope: Scope,
  { nowMs, rejectedLength, subject }: TracedBeginning,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { tracing: lazy } = scope.runtime;
  // Safe: where there is none, this is not called.
  const tracing = lazy?.value ?? (await (lazy as NonNullable<typeof lazy>).open());
  const spans = tracing.spansOf(scope, () => scope.origin(), subject);
  scope.spans = spans;
  return spans.within(() => {
    begin(scope, nowMs, rejectedLength);
    return entered(scope, work);
  });
}

/** What is known of a message before its handler runs. */
export interface MessageFacts
  extends Pick<RequestScope, "requestId" | "user" | "deadlineMs" | "isSystem"> {
  readonly handler: string;
  readonly logFields: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly signal?: AbortSignal;
  /** Where the message comes from. Default: it begins a trace. */
  readonly parent?: SpanContext | undefined;
  /** What it is about; for a tracer. */
  readonly subject?: RunSubject | undefined;
}

/** Opens the scope of a message for one handler, and runs `work` with the ambient context. */
export function runInMessageScope<Result>(
  runtime: Runtime,
  {
    requestId,
    user,
    handler,
    deadlineMs,
    isSystem,
    logFields,
    signal,
    parent,
    subject,
  }: MessageFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const scope = new Scope(
    runtime,
    requestId,
    undefined,
    signal,
    deadlineMs,
    undefined,
    logFields,
    parent,
  );
  scope.user = user;
  scope.handler = handler;
  scope.isSystem = isSystem;
  if (runtime.tracing !== undefined) return traced(scope, { subject }, work);
  begin(scope, undefined, undefined);
  return runWithStore(scope, work);
}

/** Most requests ask neither for the ambient context nor for the scope's own log: both are made when they are asked for. */
class Scope implements RequestScope {
  readonly runtime: Runtime;
  readonly requestId: string;
  readonly headers: RequestScope["headers"];
  readonly signal: AbortSignal | undefined;
  runSignal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
  readonly isolatedTo: string | undefined;
  readonly logFields: RequestScope["logFields"];
  hasMiddlewares = false;
  handler: string | undefined = undefined;
  route: string | undefined = undefined;
  startMs = 0;
  isColdStart = false;
  isReplayed = false;
  user = anonymous;
  projecting: RequestScope["projecting"] = undefined;
  misfits: RequestScope["misfits"] = undefined;
  reads: RequestScope["reads"] = undefined;
  isIdentified = false;
  isSystem = false;
  readonly #parent: SpanContext | undefined;
  asked: RequestScope["asked"] = undefined;
  spans: RunSpans | undefined = undefined;
  #trace: RequestScope["trace"] | undefined = undefined;
  #log: Logger | undefined = undefined;
  #loggedHandler: string | undefined = undefined;
  #loggedUser: User | undefined = undefined;
  #context: { readonly of: User; readonly made: AmbientContext } | undefined = undefined;

  constructor(
    runtime: Runtime,
    requestId: string,
    headers: RequestScope["headers"],
    signal: AbortSignal | undefined,
    deadlineMs: number | undefined,
    isolatedTo: string | undefined,
    logFields?: RequestScope["logFields"],
    parent?: SpanContext,
  ) {
    this.runtime = runtime;
    this.requestId = requestId;
    this.headers = headers;
    this.signal = signal;
    this.runSignal = signal;
    this.deadlineMs = deadlineMs;
    this.isolatedTo = isolatedTo;
    this.logFields = logFields;
    this.#parent = parent;
  }

  get trace(): RequestScope["trace"] {
    this.#trace ??=
      this.spans?.trace() ?? new RunTrace(this.runtime.newTraceDigits, this.origin().parent);
    return this.#trace;
  }

  /** Strangers choose neither our trace nor whether it is recorded. */
  origin(): Origin {
    const { headers, runtime } = this;
    if (headers === undefined) return { parent: this.#parent };
    const asked = runtime.server.options.trace?.incoming ?? (this.isIdentified ? "trust" : "link");
    if (asked === "trust") return { parent: incomingSpan(headers, runtime.variables) };
    // A link is a tracer's to keep.
    return asked === "ignore" || this.spans === undefined
      ? nowhere
      : { link: incomingSpan(headers, runtime.variables) };
  }

  get context(): AmbientContext {
    const known = this.#context;
    if (known?.of === this.user && known.made.signal === this.runSignal) return known.made;
    const made = this.#makeContext();
    this.#context = { of: this.user, made };
    return made;
  }

  /** Made anew once more is known of the request. */
  get log(): Logger {
    const { handler, user } = this;
    if (this.#log === undefined || this.#loggedHandler !== handler || this.#loggedUser !== user) {
      this.#log = logOf(this, handler, user);
      this.#loggedHandler = handler;
      this.#loggedUser = user;
    }
    return this.#log;
  }

  #makeContext(): AmbientContext {
    const { requestId, user, runSignal: signal } = this;
    const traceOf = () => this.trace;
    return Object.freeze({
      requestId,
      tenantId: user.tenantId,
      userId: user.id,
      signal,
      get trace() {
        return traceOf();
      },
    });
  }
}

const nowhere: Origin = Object.freeze({});

/** The log of a handler in a scope. */
export function logOf(scope: RequestScope, handler: string | undefined, user: User): Logger {
  return scope.runtime.log.child(new ScopeFields(scope, handler, user));
}

class ScopeFields extends LateContext {
  readonly #scope: RequestScope;
  readonly #handler: string | undefined;
  readonly #user: User;

  constructor(scope: RequestScope, handler: string | undefined, user: User) {
    super();
    this.#scope = scope;
    this.#handler = handler;
    this.#user = user;
  }

  fields(): Record<string, unknown> {
    const { requestId, logFields, trace } = this.#scope;
    const { tenantId, id: userId } = this.#user;
    // As OpenTelemetry names it in logs that are not its own.
    const fields = {
      requestId,
      tenantId,
      userId,
      handler: this.#handler,
      trace_id: trace.traceId,
      span_id: trace.spanId,
    };
    return logFields === undefined ? fields : { ...fields, ...logFields };
  }
}
