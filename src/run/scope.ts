import { type AmbientContext, type AmbientStore, runWithStore } from "../context/ambient.ts";
import { incomingSpan, RunTrace, type SpanContext } from "../context/trace.ts";
import { anonymous, type User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";
import { LateContext } from "../log/server-logger.ts";
import type { ExplainedReads } from "./explained-reads.ts";
import { adoptRequestId } from "./request-id.ts";
import type { ObservedRun } from "./run-observer.ts";
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
  /** Decided when it is first asked for, and the same from then on. */
  readonly trace: RunTrace;
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
  const { requestId, rejectedLength } = adoptRequestId(headers["x-request-id"], runtime.newRequestId, nowMs);
  const scope = new Scope(runtime, requestId, headers, signal, deadlineMs, isolatedTo);
  const { observer } = runtime;
  if (observer !== undefined) {
    scope.startMs = nowMs ?? runtime.clock.now();
    observer.began(scope);
  }
  if (rejectedLength !== undefined) scope.log.warn("request_id.rejected", { length: rejectedLength });
  return headers["x-keelson-explain"] === "config" ? runExplained(scope, work) : runWithStore(scope, work);
}

async function runExplained<Result>(scope: RequestScope, work: (scope: RequestScope) => Promise<Result>): Promise<Result> {
  const { createExplainedReads } = await import("./explained-reads.ts");
  scope.reads = createExplainedReads();
  return runWithStore(scope, work);
}

/** What is known of a message before its handler runs. */
export interface MessageFacts extends Pick<RequestScope, "requestId" | "user" | "deadlineMs"> {
  readonly handler: string;
  readonly logFields: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly signal?: AbortSignal;
  /** Where the message comes from. Default: it begins a trace. */
  readonly parent?: SpanContext | undefined;
}

/** Opens the scope of a message for one handler, and runs `work` with the ambient context. */
export function runInMessageScope<Result>(
  runtime: Runtime,
  { requestId, user, handler, deadlineMs, logFields, signal, parent }: MessageFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const scope = new Scope(runtime, requestId, undefined, signal, deadlineMs, undefined, logFields, parent);
  scope.user = user;
  scope.handler = handler;
  const { observer } = runtime;
  if (observer !== undefined) {
    scope.startMs = runtime.clock.now();
    observer.began(scope);
  }
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
  readonly #parent: SpanContext | undefined;
  #trace: RunTrace | undefined = undefined;
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

  get trace(): RunTrace {
    this.#trace ??= this.#openTrace();
    return this.#trace;
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

  /** Strangers choose neither our trace nor whether it is recorded. */
  #openTrace(): RunTrace {
    const { headers, runtime } = this;
    if (headers === undefined) return new RunTrace(runtime.newTraceDigits, this.#parent);
    const asked = runtime.server.options.trace?.incoming ?? (this.isIdentified ? "trust" : "link");
    return new RunTrace(runtime.newTraceDigits, asked === "trust" ? incomingSpan(headers, runtime.variables) : undefined);
  }
}

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
    const fields = { requestId, tenantId, userId, handler: this.#handler, trace_id: trace.traceId };
    return logFields === undefined ? fields : { ...fields, ...logFields };
  }
}
