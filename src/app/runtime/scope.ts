import { anonymous, type User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import { LateContext } from "../../base/log/server-logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import {
  type AmbientContext,
  type AmbientStore,
  runWithStore,
} from "../../base/request/ambient.ts";
import { incomingSpan, RunTrace, type SpanContext, type Trace } from "../../base/request/trace.ts";
import type { ObservedRun } from "../observe/run-observer.ts";
import type { AskedRequest, Origin, RunSpans, RunSubject, Tracing } from "../observe/tracing.ts";
import type { ExplainedReads } from "./explained-reads.ts";
import type { HeldRates } from "./rate-limiting.ts";
import type { RequestIds, Runtime } from "./runtime.ts";

/** Facts of a request or a message before its handler is known. */
export interface RunFacts
  extends Partial<
    Pick<RequestScope, "headers" | "signal" | "deadlineMs" | "isolatedTo" | "logFields">
  > {
  /** Default: a new trace. */
  readonly parent?: SpanContext | undefined;
}

export interface ScopeFacts extends RunFacts {
  readonly headers: Readonly<Record<string, string>>;
  /** Time of receipt, in milliseconds since the epoch. Default: now. */
  readonly nowMs?: number | undefined;
}

/** Creates the scope of a request, and runs `work` with the ambient context. */
export function runInScope<Result>(
  runtime: Runtime,
  facts: ScopeFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { headers, nowMs } = facts;
  const { observer, coldStart, clock, tracing, newRequestId } = runtime;
  const given = headers["x-request-id"];
  const { requestId, rejectedLength } = adoptRequestId(given, newRequestId, nowMs);
  const scope = new RequestScope(runtime, requestId, facts);
  const begin = () => {
    if (observer !== undefined) {
      scope.startMs = nowMs ?? clock.now();
      scope.isColdStart = coldStart.isNext;
      coldStart.isNext = false;
    }
    if (rejectedLength !== undefined)
      scope.log.warn("request_id.rejected", { length: rejectedLength });
    const enter = headers["x-keelson-explain"] === "config" ? runExplained : runWithStore;
    return enter(scope, work);
  };
  return tracing === undefined ? begin() : traced(tracing, scope, undefined, begin);
}

async function runExplained<Result>(
  scope: RequestScope,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { createExplainedReads } = await import("./explained-reads.ts");
  scope.reads = createExplainedReads();
  return runWithStore(scope, work);
}

/** Runs `work` in the span of its scope. Tracing is loaded with the first run. */
async function traced<Result>(
  tracing: Lazy<Tracing>,
  scope: RequestScope,
  subject: RunSubject | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const opened = tracing.value ?? (await tracing.open());
  scope.spans = opened.spansOf(scope, () => scope.origin(), subject);
  return scope.spans.within(work);
}

export interface MessageFacts
  extends RunFacts,
    Pick<RequestScope, "requestId" | "user" | "isSystem"> {
  readonly handler: string;
  /** For the span of the message. */
  readonly subject?: RunSubject | undefined;
}

/** Creates the scope of a message for one handler. */
export function runInMessageScope<Result>(
  runtime: Runtime,
  facts: MessageFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const scope = new RequestScope(runtime, facts.requestId, facts);
  scope.startMs = runtime.clock.now();
  scope.user = facts.user;
  scope.handler = facts.handler;
  scope.isSystem = facts.isSystem;
  const { tracing } = runtime;
  if (tracing === undefined) return runWithStore(scope, work);
  return traced(tracing, scope, facts.subject, () => runWithStore(scope, work));
}

/**
 * One request or message in progress: its ambient store, and the facts known so far. The ambient
 * context and the log are created at first access, because most requests need neither.
 */
export class RequestScope implements AmbientStore, ObservedRun {
  readonly runtime: Runtime;
  readonly requestId: string;
  /** Headers as received, with names in lower case. Absent for a message. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Aborts when the caller disconnects or the deadline passes. */
  readonly signal: AbortSignal | undefined;
  /** Signal of the handler: the caller's, or the signal of a run that several callers share. */
  runSignal: AbortSignal | undefined;
  /** Time when the process ends, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  /** The only tenant of this process, by Lambda's tenant isolation. */
  readonly isolatedTo: string | undefined;
  /** IDs that the log lines of a message contain. */
  readonly logFields: Readonly<Record<string, string>> | undefined;
  handler: string | undefined = undefined;
  route: string | undefined = undefined;
  startMs = 0;
  isColdStart = false;
  isReplayed = false;
  isHandlerOver = false;
  /** The ambient context and the log read the user from here. */
  user = anonymous;
  projecting: AmbientStore["projecting"] = undefined;
  /** Handlers whose results did not match their schema and were sent anyway. */
  misfits: Set<string> | undefined = undefined;
  /** Present if the request asks which configuration was read. */
  reads: ExplainedReads | undefined = undefined;
  rates: HeldRates | undefined = undefined;
  cost: AmbientStore["cost"] = undefined;
  /** Whether the route required authentication. Such a request may join the caller's trace. */
  isIdentified = false;
  /** Whether the system started the run: without a tenant, and not because of a request. */
  isSystem = false;
  readonly #parent: SpanContext | undefined;
  /** Request as its host received it, once the pipeline has it. */
  asked: AskedRequest | undefined = undefined;
  /** Absent if no tracer is registered. */
  spans: RunSpans | undefined = undefined;
  #trace: RequestScope["trace"] | undefined = undefined;
  #log:
    | { readonly of: User; readonly handler: string | undefined; readonly made: Logger }
    | undefined;
  #context: { readonly of: User; readonly made: AmbientContext } | undefined;

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

  /** Created at first access, and constant from then on. */
  get trace(): Trace & { readonly spanId?: string } {
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
    const { requestId, user, runSignal: signal } = this;
    if (this.#context?.of !== user || this.#context.made.signal !== signal) {
      const traceOf = () => this.trace;
      const made = Object.freeze({
        ...{ requestId, tenantId: user.tenantId, userId: user.id, signal },
        get trace() {
          return traceOf();
        },
      });
      this.#context = { of: user, made };
    }
    return this.#context.made;
  }

  /** Logger with the IDs of the run, and with its handler and its user once they are known. */
  get log(): Logger {
    const { handler, user } = this;
    if (this.#log?.of !== user || this.#log.handler !== handler)
      this.#log = { of: user, handler, made: logOf(this, handler, user) };
    return this.#log.made;
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
    const { traceId: trace_id, spanId: span_id } = trace;
    const fields = { requestId, tenantId, userId, handler: this.#handler, trace_id, span_id };
    return logFields === undefined ? fields : { ...fields, ...logFields };
  }
}

/**
 * Adopts the value of `X-Request-ID` or generates an ID (specification 4.4). Accepts 1 to 128
 * characters of `A-Z a-z 0-9 . _ : = + / @ -`, and therefore neither an empty header nor several
 * joined by `, `. Of a rejected value, only the length may be logged.
 */
export function adoptRequestId(
  header: string | undefined,
  generate: RequestIds,
  nowMs?: number,
): { readonly requestId: string; readonly rejectedLength?: number } {
  if (header === undefined) return { requestId: generate(nowMs) };
  if (header !== "" && header.length <= 128 && !unaccepted.test(header))
    return { requestId: header };
  return { requestId: generate(nowMs), rejectedLength: header.length };
}

/** Finding one invalid character takes half the time of matching all valid ones. */
const unaccepted = /[^A-Za-z0-9._:=+/@-]/;

const [poolBytes, idBytes] = [4096, 10];

/**
 * Creates a generator of UUIDv7s. Up to about 2,000 IDs within one millisecond are ordered. Draws
 * random bytes 4 KiB at a time: one draw per ID would cost more than the rest of the generation.
 */
export function createRequestIds(
  clock: Clock,
  // Global `crypto` adds 0.6 ms to a cold start; importing `node:crypto` adds 4 ms.
  fill: (pool: Uint8Array<ArrayBuffer>) => unknown = (pool) => crypto.getRandomValues(pool),
): RequestIds {
  const pool = new Uint8Array(poolBytes);
  const view = new DataView(pool.buffer);
  let [offset, lastMs, counter, time] = [poolBytes, -1, 0, ""];
  return function nextRequestId(now = clock.now()) {
    if (offset + idBytes > poolBytes) {
      fill(pool);
      offset = 0;
    }
    if (now !== lastMs) {
      lastMs = now;
      const digits = (Math.max(0, Math.floor(now)) % 2 ** 48).toString(16).padStart(12, "0");
      time = `${digits.slice(0, 8)}-${digits.slice(8)}-`;
      // RFC 9562 6.2, method 1: a counter replaces the first random bits, from its lower half.
      counter = view.getUint16(offset) & 0x7ff;
    }
    view.setUint16(offset, counter);
    counter += 1;
    offset += idBytes;
    return layout(time, view, offset - idBytes);
  };
}

/** Returns the UUID of a time and ten bytes. Six bits are replaced by the version and the variant. */
function layout(time: string, bytes: DataView, at: number): string {
  const hex = (index: number, keep = 0xff, set = 0) =>
    octets[(bytes.getUint8(at + index) & keep) | set];
  const last = `${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
  return `${time}${hex(0, 0x0f, 0x70)}${hex(1)}-${hex(2, 0x3f, 0x80)}${hex(3)}-${last}`;
}

const octets: readonly string[] = Object.freeze(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0")),
);
