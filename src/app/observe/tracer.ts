import type { SpanContext, TraceHeaders } from "../../base/request/trace.ts";

// What is used of OpenTelemetry's API. Nothing of it is imported: a copy that is newer than the one that an SDK has registered
// itself with would do nothing, and an import of any would cost a cold start. So the registered one itself is called.

/** Values that go with what runs. */
export interface TracerContext {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): TracerContext;
  deleteValue(key: symbol): TracerContext;
}

/** How a span is named to others. */
export interface TracerSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly traceState?: { serialize(): string } | undefined;
  readonly isRemote?: boolean;
}

/** A value of an attribute. */
export type AttributeValue = string | number | boolean | readonly string[];

/** Attributes of a span; those that are undefined are left out. */
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** A span. */
export interface TracerSpan {
  spanContext(): TracerSpanContext;
  setAttribute(key: string, value: unknown): this;
  setAttributes(attributes: Attributes): this;
  addEvent(...given: readonly unknown[]): this;
  addLink(...given: readonly unknown[]): this;
  addLinks(...given: readonly unknown[]): this;
  setStatus(status: { readonly code: number; readonly message?: string }): this;
  updateName(name: string): this;
  end(endTime?: number): void;
  isRecording(): boolean;
  recordException(exception: unknown, time?: unknown): void;
}

/** What a span is started with. */
export interface SpanOptions {
  readonly kind: number;
  readonly attributes?: Attributes;
  readonly links?: readonly { readonly context: TracerSpanContext }[];
  /** In milliseconds since the epoch. Default: now. */
  readonly startTime?: number;
}

/** Kinds of spans, as the API numbers them. */
export const spanKinds = Object.freeze({
  internal: 0,
  server: 1,
  client: 2,
  producer: 3,
  consumer: 4,
});
/** A status that says so. */
export const failed = Object.freeze({ code: 2 });
/** A status of HTTP from which on the server has failed. */
export const serverErrors = 500;

interface RegisteredApi {
  readonly trace?: {
    getTracer(name: string): {
      startSpan(name: string, options: SpanOptions, context: TracerContext): TracerSpan;
    };
  };
  readonly context?: {
    active(): TracerContext;
    with<Result>(context: TracerContext, work: () => Result): Result;
  };
}

/** What an SDK has registered itself with, in any version 1 of the API. */
function registeredApi(): RegisteredApi | undefined {
  // Safe: that is what the API keeps there.
  return (globalThis as { readonly [key: symbol]: unknown })[
    Symbol.for("opentelemetry.js.api.1")
  ] as RegisteredApi | undefined;
}

/** The keys of a context are the same in every copy of the API. */
const spanKey = Symbol.for("OpenTelemetry Context Key SPAN");
const suppressionKey = Symbol.for("OpenTelemetry SDK Context Key SUPPRESS_TRACING");
const rpcKey = Symbol.for("OpenTelemetry SDK Context Key RPC_METADATA");

/** Starts spans, and makes them the active ones. */
export class Tracer {
  readonly #api = registeredApi();

  /** The context of what runs. */
  active(): TracerContext {
    return this.#api?.context?.active() ?? noContext;
  }

  /** The span of a context, where it is one. */
  spanOf(context: TracerContext): TracerSpan | undefined {
    const span = context.getValue(spanKey) as TracerSpan | undefined; // safe: nothing else is kept by this key
    return span !== undefined && isValid(span.spanContext()) ? span : undefined;
  }

  /** A context whose span is another. */
  withSpan(
    context: TracerContext,
    span: TracerSpan | { spanContext(): TracerSpanContext },
  ): TracerContext {
    return context.setValue(spanKey, span);
  }

  /** A context in which SDKs start no spans, so that instrumentations add none. */
  suppressed(context: TracerContext): TracerContext {
    return context.setValue(suppressionKey, true);
  }

  /** Tells an instrumentation of Node's HTTP which route its span is of; `false` where there is none. */
  isHttp(context: TracerContext, route?: string): boolean {
    const metadata = context.getValue(rpcKey) as
      | { readonly type?: string; route?: string }
      | undefined; // safe: as above
    if (metadata?.type !== "http") return false;
    if (route !== undefined) metadata.route = route;
    return true;
  }

  start(name: string, options: SpanOptions, context: TracerContext): TracerSpan {
    const given = { ...options, attributes: present(options.attributes ?? {}) };
    // Safe: it is used where an SDK has registered itself.
    return (this.#api as Required<RegisteredApi>).trace
      .getTracer("keelson")
      .startSpan(name, given, context);
  }

  /** Runs work with a context that is the active one, also for the application and its libraries. */
  within<Result>(context: TracerContext, work: () => Result): Result {
    return this.#api?.context === undefined ? work() : this.#api.context.with(context, work);
  }
}

/** Leaves out attributes that are undefined. */
export function present(attributes: Attributes): Record<string, AttributeValue> {
  const found: Record<string, AttributeValue> = {};
  for (const name of Object.keys(attributes)) {
    const value = attributes[name];
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/** Whether a span is one: where nothing records there may be one of zeros. */
export function isValid({ traceId, spanId }: TracerSpanContext): boolean {
  return /[1-9a-f]/.test(traceId) && /[1-9a-f]/.test(spanId);
}

/** A span of somebody else's, as the API has it; `undefined` where only its trace is known. */
export function remoteSpan(
  span: SpanContext | undefined,
): { spanContext(): TracerSpanContext } | undefined {
  if (span?.spanId === undefined) return undefined;
  const { traceId, spanId, sampled, state } = span;
  const traceState = state === undefined ? undefined : new TraceState(state.split(","));
  const context = { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true, traceState };
  return { spanContext: () => context };
}

/** The headers that name a span. */
export function headersOf({
  traceId,
  spanId,
  traceFlags,
  traceState,
}: TracerSpanContext): TraceHeaders {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags & 1 ? "01" : "00"}`;
  const tracestate = traceState?.serialize();
  return Object.freeze(tracestate ? { traceparent, tracestate } : { traceparent });
}

/** `tracestate`, as samplers and propagators ask for it. */
class TraceState {
  readonly #members: readonly string[];

  constructor(members: readonly string[]) {
    this.#members = members;
  }

  get(key: string): string | undefined {
    return this.#members.find((member) => member.startsWith(`${key}=`))?.slice(key.length + 1);
  }

  /** The one that was changed comes first. */
  set(key: string, value: string): TraceState {
    return new TraceState([`${key}=${value}`, ...this.#others(key)]);
  }

  unset(key: string): TraceState {
    return new TraceState(this.#others(key));
  }

  serialize(): string {
    return this.#members.join(",");
  }

  #others(key: string): readonly string[] {
    return this.#members.filter((member) => !member.startsWith(`${key}=`));
  }
}

/** Where an SDK has registered no context manager: nothing is active, and children are told of their parent. */
class PlainContext implements TracerContext {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown>) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): TracerContext {
    return new PlainContext(new Map([...this.#values, [key, value]]));
  }

  deleteValue(key: symbol): TracerContext {
    return new PlainContext(new Map([...this.#values].filter(([each]) => each !== key)));
  }
}

const noContext: TracerContext = new PlainContext(new Map());
