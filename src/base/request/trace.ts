/** Headers that make an outgoing call part of the same trace (W3C Trace Context). */
export interface TraceHeaders {
  readonly traceparent: string;
  /** Data added by the callers' tracing systems. Pass it on only to your own services. */
  readonly tracestate?: string;
}

/** Trace of a request, an event or a job. */
export interface Trace {
  /**
   * ID of 32 hexadecimal digits in lower case, which a request shares with all events and jobs that
   * follow from it.
   */
  readonly traceId: string;
  /** Whether a caller reports that it records the trace. */
  readonly sampled: boolean;
  /**
   * Returns the headers for outgoing calls.
   *
   * @example
   * await fetch(url, { headers: { ...ctx.trace.headers() }, signal: ctx.signal });
   */
  readonly headers: () => TraceHeaders;
}

/**
 * Handling of an incoming trace: `trust` joins it, `link` starts a new trace that tracers link to
 * it, `ignore` does not read it.
 */
export type IncomingTrace = "trust" | "link" | "ignore";

export interface SpanContext {
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case; `undefined` if the caller sent only a trace ID. */
  readonly spanId: string | undefined;
  readonly sampled: boolean;
  /** `tracestate` in the form that is forwarded. */
  readonly state: string | undefined;
}

export class RunTrace implements Trace {
  readonly traceId: string;
  readonly sampled: boolean;
  readonly #newDigits: RandomDigits;
  readonly #parent: SpanContext | undefined;
  #headers: TraceHeaders | undefined;

  constructor(newDigits: RandomDigits, parent?: SpanContext) {
    this.traceId = parent?.traceId ?? newDigits(16);
    // Not sampled without a parent: no caller has recorded the trace (W3C Trace Context, 3.2.2.5).
    this.sampled = parent?.sampled === true;
    this.#newDigits = newDigits;
    this.#parent = parent;
  }

  readonly headers = (): TraceHeaders => {
    this.#headers ??= this.#makeHeaders();
    return this.#headers;
  };

  #makeHeaders(): TraceHeaders {
    const traceparent = `00-${this.traceId}-${this.#newDigits(8)}-${this.sampled ? "01" : "00"}`;
    const tracestate = this.#parent?.state;
    return Object.freeze(tracestate === undefined ? { traceparent } : { traceparent, tracestate });
  }
}

/** Returns random bytes as hexadecimal digits. */
export type RandomDigits = (bytes: 8 | 16) => string;

/**
 * Draws 4 KiB at a time: a draw per ID would cost more than everything else. `Math.random` would
 * take three times as long (6 and 19 ns per ID).
 */
export function createRandomDigits(): RandomDigits {
  const pool = Buffer.alloc(4096);
  let offset = pool.length;
  return (bytes) => {
    if (offset + bytes > pool.length) {
      crypto.getRandomValues(pool);
      offset = 0;
    }
    offset += bytes;
    return pool.toString("hex", offset - bytes, offset);
  };
}

type Lookup = Readonly<Record<string, unknown>>;

const maxLength = 512;

/**
 * Reads the trace of a request: `traceparent` with `tracestate` (W3C) first, then the trace of the
 * Lambda invocation, which names the running segment, then `x-amzn-trace-id`. Ignores malformed
 * values. Names of headers are in lower case.
 */
export function incomingSpan(headers: Lookup, env: Lookup = {}): SpanContext | undefined {
  return w3cSpan(headers) ?? xRaySpan(invocationTrace(env)) ?? xRaySpan(headers["x-amzn-trace-id"]);
}

/** Returns the X-Ray trace of the invocation. The variable lacks the traces of concurrent invocations. */
function invocationTrace(env: Lookup): unknown {
  const { awslambda } = globalThis as {
    readonly awslambda?: { readonly InvokeStore?: { getXRayTraceId?(): unknown } };
  }; // safe: any member may be read
  const own = awslambda?.InvokeStore?.getXRayTraceId?.();
  return (
    own ?? (env["AWS_LAMBDA_MAX_CONCURRENCY"] === undefined ? env["_X_AMZN_TRACE_ID"] : undefined)
  );
}

/** Ignores malformed values. */
export function w3cSpan(given: unknown): SpanContext | undefined {
  const { traceparent, tracestate } = Object(given) as Lookup; // safe: any member of an object may be read
  const [, version, traceId, spanId, flags, more] = match(traceparent, traceparentForm);
  // Later versions may append more fields, version 00 must not.
  if (traceId === undefined || (version === "00" && more !== undefined)) return undefined;
  const sampled = (Number.parseInt(String(flags), 16) & 1) === 1;
  return { traceId, spanId, sampled, state: stateOf(tracestate) };
}

/** `<version>-<trace>-<span>-<flags>`, not version ff or IDs of zeros (W3C Trace Context 3.2, 4.3). */
const traceparentForm =
  /^[ \t]*(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*?)?[ \t]*$/;
const stateMember = /^([a-z\d][a-z\d_\-*/@]{0,255})=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;
const maxMembers = 32;

/** Reads `tracestate`. Any invalid or duplicate member voids the list (W3C Trace Context 3.3). */
function stateOf(given: unknown): string | undefined {
  if (typeof given !== "string" || given.length > maxLength) return undefined;
  const members = given.split(",").flatMap((part) => part.replace(/^[ \t]+|[ \t]+$/g, "") || []);
  const keys = new Set(members.map((member) => stateMember.exec(member)?.[1]));
  if (keys.has(undefined) || keys.size !== members.length || keys.size > maxMembers)
    return undefined;
  return members.join(",") || undefined;
}

/** Reads `Root=1-<8 digits>-<24 digits>;Parent=<16 digits>;Sampled=1` and more, in any order. */
function xRaySpan(header: unknown): SpanContext | undefined {
  const [, time, rest] = match(header, xRayRoot);
  const traceId = `${time}${rest}`.toLowerCase();
  if (time === undefined || /^0+$/.test(traceId)) return undefined;
  const [, spanId] = match(header, xRayParent);
  return {
    traceId,
    spanId: spanId?.toLowerCase(),
    sampled: match(header, xRaySampled).length > 0,
    state: undefined,
  };
}

const xRayRoot = /(?:^|;)[ \t]*root=1-([\da-f]{8})-([\da-f]{24})[ \t]*(?:;|$)/i;
const xRayParent = /(?:^|;)[ \t]*parent=(?!0{16})([\da-f]{16})[ \t]*(?:;|$)/i;
const xRaySampled = /(?:^|;)[ \t]*sampled=1[ \t]*(?:;|$)/i;

function match(given: unknown, form: RegExp): readonly (string | undefined)[] {
  return (typeof given === "string" && given.length <= maxLength && form.exec(given)) || [];
}

/** Form of request IDs and keelson's own IDs, for a regular expression or a document. */
export const idForm = "[A-Za-z0-9._:=+/@-]{1,128}";
