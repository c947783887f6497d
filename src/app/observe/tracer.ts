import type { SpanContext, TraceHeaders } from "../../base/request/trace.ts";
import { defined } from "../../base/types/defined.ts";
import { openTelemetry } from "./run-observer.ts";

// keelson calls the copy of OpenTelemetry's API with which the SDK registered: an imported copy
// does nothing if it is newer, and slows a cold start.

export interface TracerContext {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): TracerContext;
  deleteValue(key: symbol): TracerContext;
}

export interface TracerSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly traceState?: { serialize(): string } | undefined;
  readonly isRemote?: boolean;
}

export type AttributeValue = string | number | boolean | readonly string[];

export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

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

export interface SpanOptions {
  readonly kind: number;
  readonly attributes?: Attributes;
  readonly links?: readonly { readonly context: TracerSpanContext }[];
  /** Start time, in milliseconds since the epoch. Default: now. */
  readonly startTime?: number;
}

export const spanKinds = Object.freeze({
  internal: 0,
  server: 1,
  client: 2,
  producer: 3,
  consumer: 4,
});
export const failed = Object.freeze({ code: 2 });
/** Lowest HTTP status that is a failure of the server. */
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

/** Context keys, the same in every copy of the API. */
const spanKey = Symbol.for("OpenTelemetry Context Key SPAN");
const suppressionKey = Symbol.for("OpenTelemetry SDK Context Key SUPPRESS_TRACING");
const rpcKey = Symbol.for("OpenTelemetry SDK Context Key RPC_METADATA");

export interface AroundOptions extends SpanOptions {
  readonly name: string;
}

export class Tracer {
  readonly #api: RegisteredApi | undefined = Reflect.get(globalThis, openTelemetry);

  active(): TracerContext {
    return this.#api?.context?.active() ?? noContext;
  }

  /** Returns `undefined` if the span is missing or invalid. */
  spanOf(context: TracerContext): TracerSpan | undefined {
    const span = context.getValue(spanKey) as TracerSpan | undefined; // safe: this key holds only spans
    return span !== undefined && isValid(span.spanContext()) ? span : undefined;
  }

  withSpan(context: TracerContext, span: Pick<TracerSpan, "spanContext">): TracerContext {
    return context.setValue(spanKey, span);
  }

  /** Returns a context in which instrumentations start no spans. */
  suppressed(context: TracerContext): TracerContext {
    return context.setValue(suppressionKey, true);
  }

  /** Whether an instrumentation of Node's HTTP owns the context. If so, passes it the route. */
  isHttp(context: TracerContext, route?: string): boolean {
    const metadata = context.getValue(rpcKey) as
      | { readonly type?: string; route?: string }
      | undefined; // safe: this key holds only RPC metadata
    if (metadata?.type !== "http") return false;
    if (route !== undefined) metadata.route = route;
    return true;
  }

  start(name: string, options: SpanOptions, context: TracerContext): TracerSpan {
    const given = { ...options, attributes: defined(options.attributes ?? {}) };
    // The cast is safe: `start` is called only if an SDK is registered.
    return (this.#api as Required<RegisteredApi>).trace
      .getTracer("keelson")
      .startSpan(name, given, context);
  }

  within<Result>(context: TracerContext, work: () => Result): Result {
    return this.#api?.context === undefined ? work() : this.#api.context.with(context, work);
  }

  async around<Result>(
    context: TracerContext,
    { name, ...options }: AroundOptions,
    work: (span: TracerSpan) => Promise<Result>,
    fail: (span: TracerSpan, error: unknown) => void,
    within: (context: TracerContext) => TracerContext = (same) => same,
  ): Promise<Result> {
    const span = this.start(name, options, context);
    try {
      return await this.within(within(this.withSpan(context, span)), () => work(span));
    } catch (error) {
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}

/** If no SDK records, IDs can be all zeros. */
export function isValid({ traceId, spanId }: TracerSpanContext): boolean {
  return /[1-9a-f]/.test(traceId) && /[1-9a-f]/.test(spanId);
}

/** Returns a remote span in the API's form; `undefined` if only its trace is known. */
export function remoteSpan(
  span: SpanContext | undefined,
): Pick<TracerSpan, "spanContext"> | undefined {
  if (span?.spanId === undefined) return undefined;
  const { traceId, spanId, sampled, state } = span;
  const traceState = state === undefined ? undefined : new TraceState(state.split(","));
  const context = { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true, traceState };
  return { spanContext: () => context };
}

export function linksOf(...spans: readonly (Pick<TracerSpan, "spanContext"> | undefined)[]) {
  return spans.flatMap((span) => (span === undefined ? [] : [{ context: span.spanContext() }]));
}

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

export function fail(span: TracerSpan, error: unknown, isRecorded: boolean): void {
  if (isRecorded) record(span, error);
  span.setAttribute("error.type", typeOf(error)).setStatus(failed);
}

export function record(span: TracerSpan, error: unknown): void {
  try {
    span.recordException(error instanceof Error ? error : String(error));
  } catch {} // the log has such an error
}

/** Returns the code of an error, or otherwise its name. */
export function typeOf(error: unknown): string {
  try {
    const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }; // safe: only read
    return String(
      [code, name].find((given) => typeof given === "string" && /^[\w.:-]{1,64}$/.test(given)) ??
        "_OTHER",
    );
  } catch {
    return "_OTHER";
  }
}

/** A `tracestate` with the methods that samplers and propagators call. */
class TraceState {
  readonly #members: readonly string[];

  constructor(members: readonly string[]) {
    this.#members = members;
  }

  get(key: string): string | undefined {
    return this.#members.find((member) => member.startsWith(`${key}=`))?.slice(key.length + 1);
  }

  /** Returns a copy whose first member is the changed one. */
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

/** Context for an SDK without a context manager, whose spans receive their parent explicitly. */
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
