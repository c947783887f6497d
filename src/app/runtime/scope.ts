import { anonymous, type User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import { LateContext } from "../../base/log/server-logger.ts";
import type { AmbientContext, AmbientStore } from "../../base/request/ambient.ts";
import { incomingSpan, RunTrace, type SpanContext, type Trace } from "../../base/request/trace.ts";
import type { ObservedRun } from "../observe/run-observer.ts";
import type { AskedRequest, Origin, RunSpans } from "../observe/spans.ts";
import type { ExplainedReads } from "./explained-reads.ts";
import type { Runtime } from "./runtime.ts";

/** One request or message in progress: its ambient store, and the facts known so far. */
export interface RequestScope extends AmbientStore, ObservedRun {
  readonly runtime: Runtime;
  readonly requestId: string;
  /** Aborts when the caller disconnects or the deadline passes. */
  readonly signal: AbortSignal | undefined;
  /**
   * Signal of the handler and of the ambient context: the caller's signal, or the signal of a
   * shared run, which aborts when its last caller disconnects.
   */
  runSignal: AbortSignal | undefined;
  /** Time when the process ends, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** Only tenant that this process works for, passed by Lambda's tenant isolation. */
  readonly isolatedTo: string | undefined;
  /** Headers as received, with names in lower case. Absent for a message. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  handler: string | undefined;
  route: string | undefined;
  isReplayed: boolean;
  /** User of the request, once known. The ambient context and the log read it from here. */
  user: User;
  /** Records configuration reads, if the request asks for that. */
  reads: ExplainedReads | undefined;
  /** IDs that the log lines of a message contain. */
  readonly logFields: Readonly<Record<string, string>> | undefined;
  /** Handlers whose results did not match their schema and were sent anyway. Absent at first. */
  misfits: Set<string> | undefined;
  /**
   * Whether the route required authentication and the caller has authenticated. Such a request
   * joins the caller's trace, unless the server's options differ.
   */
  isIdentified: boolean;
  /** Whether the system started the run: without a tenant, and not because of a request. */
  isSystem: boolean;
  /** Trace of the run. Created at first access, and constant from then on. */
  readonly trace: Trace & { readonly spanId?: string };
  /** Request as its host received it, once the pipeline has it. */
  asked: AskedRequest | undefined;
  /** Spans of the run. Absent if no tracer is registered. */
  readonly spans: RunSpans | undefined;
  /**
   * Logger with `requestId` and `trace_id`, and with `handler`, `tenantId` and `userId` once they
   * are known.
   */
  readonly log: Logger;
}

/** Facts of a request or a message before its handler is known. */
export type RunFacts = {
  readonly [Name in "headers" | "signal" | "deadlineMs" | "isolatedTo" | "logFields"]?:
    | RequestScope[Name]
    | undefined;
} & {
  /** Span that caused the run. Default: the run starts a new trace. */
  readonly parent?: SpanContext | undefined;
};

/**
 * Scope that creates the ambient context and the log at first access, because most requests need
 * neither.
 */
export class Scope implements RequestScope {
  readonly runtime: Runtime;
  readonly requestId: string;
  readonly headers: RequestScope["headers"];
  readonly signal: AbortSignal | undefined;
  runSignal: AbortSignal | undefined;
  readonly deadlineMs: number | undefined;
  readonly isolatedTo: string | undefined;
  readonly logFields: RequestScope["logFields"];
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

  constructor(runtime: Runtime, requestId: string, facts: RunFacts) {
    this.runtime = runtime;
    this.requestId = requestId;
    this.headers = facts.headers;
    this.signal = facts.signal;
    this.runSignal = facts.signal;
    this.deadlineMs = facts.deadlineMs;
    this.isolatedTo = facts.isolatedTo;
    this.logFields = facts.logFields;
    this.#parent = facts.parent;
  }

  get trace(): RequestScope["trace"] {
    this.#trace ??=
      this.spans?.trace() ?? new RunTrace(this.runtime.newTraceDigits, this.origin().parent);
    return this.#trace;
  }

  /**
   * Returns how the run relates to the caller's trace. By default, unauthenticated callers control
   * neither the trace nor whether it is recorded.
   */
  origin(): Origin {
    const { headers, runtime } = this;
    if (headers === undefined) return { parent: this.#parent };
    const asked = runtime.server.options.trace?.incoming ?? (this.isIdentified ? "trust" : "link");
    if (asked === "trust") return { parent: incomingSpan(headers, runtime.variables) };
    // Only a tracer can record a link.
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

  /** Logger of the run. Recreated when the handler or the user changes. */
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
    // `trace_id` and `span_id` are OpenTelemetry's names for log formats other than its own.
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
