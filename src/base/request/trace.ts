/** What an outgoing call carries, so that what it causes belongs to the same trace (W3C Trace Context). */
export interface TraceHeaders {
  readonly traceparent: string;
  /** What tracing systems of callers have added; for callees of your own. */
  readonly tracestate?: string;
}

/** The trace that a request, an event or a job belongs to. */
export interface Trace {
  /** 32 hexadecimal digits, lower case: the same from the request to everything that follows from it. */
  readonly traceId: string;
  /** Whether a caller says that it is recorded. */
  readonly sampled: boolean;
  /**
   * Gives the headers for outgoing calls.
   *
   * @example
   * await fetch(url, { headers: { ...ctx.trace.headers() }, signal: ctx.signal });
   */
  readonly headers: () => TraceHeaders;
}

/** What becomes of the trace that a request names: it is joined, another begins, or it is not looked at. */
export type IncomingTrace = "trust" | "link" | "ignore";

/** A span of somebody else's, as it came. */
export interface SpanContext {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** 16 hexadecimal digits, lower case; `undefined` if only the trace was named. */
  readonly spanId: string | undefined;
  readonly sampled: boolean;
  /** `tracestate`, as it is sent on. */
  readonly state: string | undefined;
}

/** The trace of one run: that of its parent, or else one of its own. */
export class RunTrace implements Trace {
  readonly traceId: string;
  readonly sampled: boolean;
  readonly #newDigits: RandomDigits;
  readonly #parent: SpanContext | undefined;
  #headers: TraceHeaders | undefined;

  constructor(newDigits: RandomDigits, parent?: SpanContext) {
    this.traceId = parent?.traceId ?? newDigits(16);
    // Of a trace that begins here nobody has recorded anything (W3C Trace Context, 3.2.2.5).
    this.sampled = parent?.sampled === true;
    this.#newDigits = newDigits;
    this.#parent = parent;
  }

  /** The same for all calls of a run: they have one parent. */
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

/** Gives so many random bytes as hexadecimal digits. */
export type RandomDigits = (bytes: 8 | 16) => string;

const poolBytes = 4096;

/** Creates {@link RandomDigits}: drawn 4 KiB at a time, since one draw an ID would cost more than the rest of it. */
export function createRandomDigits(): RandomDigits {
  const pool = Buffer.alloc(poolBytes);
  let offset = poolBytes;
  return (bytes) => {
    if (offset + bytes > poolBytes) {
      crypto.getRandomValues(pool);
      offset = 0;
    }
    offset += bytes;
    return pool.toString("hex", offset - bytes, offset);
  };
}

type Lookup = Readonly<Record<string, unknown>>;

/** How long a header or member may be. */
const maxLength = 512;

/**
 * Reads the trace of a request: `traceparent` with `tracestate` (W3C), else what Lambda says of the invocation, which names the
 * segment that runs, else `x-amzn-trace-id`. What is malformed counts as absent.
 *
 * @param headers names in lower case
 * @param env the process's environment; only what Lambda sets is read
 */
export function incomingSpan(headers: Lookup, env: Lookup = {}): SpanContext | undefined {
  return w3cSpan(headers) ?? xRaySpan(invocationTrace(env)) ?? xRaySpan(headers["x-amzn-trace-id"]);
}

/** That of the invocation. Where there are several at a time, Lambda's store has that of each, and a variable could not. */
function invocationTrace(env: Lookup): unknown {
  // Safe: any member of it may be read.
  const { awslambda } = globalThis as {
    readonly awslambda?: { readonly InvokeStore?: { getXRayTraceId?(): unknown } };
  };
  const own = awslambda?.InvokeStore?.getXRayTraceId?.();
  return (
    own ?? (env["AWS_LAMBDA_MAX_CONCURRENCY"] === undefined ? env["_X_AMZN_TRACE_ID"] : undefined)
  );
}

/** Reads the trace of a message, or of headers, by W3C Trace Context alone. Whatever is no context counts as absent. */
export function w3cSpan(given: unknown): SpanContext | undefined {
  const { traceparent, tracestate } = Object(given) as Lookup; // safe: any member of an object may be read
  const [, version, traceId, spanId, flags, more] = match(traceparent, traceparentForm);
  // Versions to come may have more after it, this one has not.
  if (traceId === undefined || (version === "00" && more !== undefined)) return undefined;
  return { traceId, spanId, sampled: isOdd(flags), state: stateOf(tracestate) };
}

/** `<version>-<trace>-<span>-<flags>`; ff is no version, and zeros are no IDs (W3C Trace Context 3.2 and 4.3). */
const traceparentForm =
  /^[ \t]*(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*?)?[ \t]*$/;
const stateMember = /^([a-z\d][a-z\d_\-*/@]{0,255})=[ -+\--<>-~]{0,255}[!-+\--<>-~]$/;
const maxMembers = 32;

/** A list with a member that is none, or twice the same, counts as absent (W3C Trace Context 3.3). */
function stateOf(given: unknown): string | undefined {
  if (typeof given !== "string" || given.length > maxLength) return undefined;
  const members = given.split(",").flatMap((part) => part.replace(/^[ \t]+|[ \t]+$/g, "") || []);
  const keys = new Set(members.map((member) => stateMember.exec(member)?.[1]));
  if (keys.has(undefined) || keys.size !== members.length || keys.size > maxMembers)
    return undefined;
  return members.join(",") || undefined;
}

/** `Root=1-<8 digits>-<24 digits>;Parent=<16 digits>;Sampled=1`, in any order, among others. */
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

function isOdd(flags: string | undefined): boolean {
  return (Number.parseInt(String(flags), 16) & 1) === 1;
}
