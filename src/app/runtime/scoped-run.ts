import type { Clock } from "../../base/process/clock.ts";
import { runWithStore } from "../../base/request/ambient.ts";
import type { RunSubject } from "../observe/spans.ts";
import type { RequestIds, Runtime } from "./runtime.ts";
import { type RequestScope, type RunFacts, Scope } from "./scope.ts";

export interface ScopeFacts extends Omit<RunFacts, "logFields" | "parent"> {
  /** Headers with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Time when the request was received, in milliseconds since the epoch. Default: now. */
  readonly nowMs?: number | undefined;
}

/**
 * Creates the scope of a request: adopts or generates its ID (specification 4.4), and runs `work`
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
  const enter = asksExplanation(scope) ? runExplained : runWithStore;
  begin(scope, { nowMs, rejectedLength });
  return enter(scope, work);
}

/** Whether the client asks which configuration was read. */
function asksExplanation({ headers }: RequestScope): boolean {
  return headers?.["x-keelson-explain"] === "config";
}

async function runExplained<Result>(
  scope: RequestScope,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { createExplainedReads } = await import("./explained-reads.ts");
  scope.reads = createExplainedReads();
  return runWithStore(scope, work);
}

function begin(scope: Scope, { nowMs, rejectedLength }: Beginning): void {
  const { observer, clock } = scope.runtime;
  if (observer !== undefined) {
    scope.startMs = nowMs ?? clock.now();
    observer.began(scope);
  }
  if (rejectedLength !== undefined)
    scope.log.warn("request_id.rejected", { length: rejectedLength });
}

interface Beginning {
  readonly nowMs?: number | undefined;
  readonly rejectedLength?: number | undefined;
  /** Subject of a message, for its span. */
  readonly subject?: RunSubject | undefined;
}

/** Runs `work` in the span of its scope. Tracing is loaded with the first run. */
async function traced<Result>(
  scope: Scope,
  beginning: Beginning,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { tracing: lazy } = scope.runtime;
  // The cast is safe: this function is only called if there is a tracer.
  const tracing = lazy?.value ?? (await (lazy as NonNullable<typeof lazy>).open());
  const spans = tracing.spansOf(scope, () => scope.origin(), beginning.subject);
  scope.spans = spans;
  return spans.within(() => {
    begin(scope, beginning);
    return asksExplanation(scope) ? runExplained(scope, work) : runWithStore(scope, work);
  });
}

export interface MessageFacts
  extends Pick<RunFacts, "signal" | "parent">,
    Pick<RequestScope, "requestId" | "user" | "deadlineMs" | "isSystem"> {
  readonly handler: string;
  readonly logFields: Readonly<Record<string, string>>;
  readonly subject?: RunSubject | undefined;
}

/** Creates the scope of a message for one handler, and runs `work` with the ambient context. */
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
  begin(scope, {});
  return runWithStore(scope, work);
}

export interface AdoptedRequestId {
  readonly requestId: string;
  /** Length of a rejected header, the only fact about it that may be logged. Otherwise absent. */
  readonly rejectedLength?: number;
}

/**
 * Adopts the value of `X-Request-ID` or generates an ID (specification 4.4). Accepts 1 to 128
 * characters of `A-Z a-z 0-9 . _ : = + / @ -`, and therefore neither an empty header nor several
 * joined by `, `.
 */
export function adoptRequestId(
  header: string | undefined,
  generate: RequestIds,
  nowMs?: number,
): AdoptedRequestId {
  if (header === undefined) return { requestId: generate(nowMs) };
  if (header !== "" && header.length <= maxLength && !unaccepted.test(header))
    return { requestId: header };
  return { requestId: generate(nowMs), rejectedLength: header.length };
}

const maxLength = 128;
/** Searching for one invalid character takes half the time of matching all valid ones. */
const unaccepted = /[^A-Za-z0-9._:=+/@-]/;

const poolBytes = 4096;
const idBytes = 10;

/**
 * Creates a generator of UUIDv7s. IDs within one millisecond are ordered, up to about 2,000 IDs.
 * Random bytes are drawn 4 KiB at a time, because one draw per ID would cost more than the rest of
 * the generation.
 */
export function createRequestIds(clock: Clock, fill = fillAtRandom): RequestIds {
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
      time = timeDigits(now);
      // RFC 9562 6.2, method 1: a counter in place of the first random bits, starting in its lower
      // half.
      counter = view.getUint16(offset) & 0x7ff;
    }
    view.setUint16(offset, counter);
    counter += 1;
    const id = layout(time, view, offset);
    offset += idBytes;
    return id;
  };
}

/** Uses global `crypto`, which adds 0.6 ms to a cold start; importing `node:crypto` adds 4 ms. */
function fillAtRandom(pool: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(pool);
}

/** Formats the 48 bits of time for a UUID. */
function timeDigits(now: number): string {
  const digits = (Math.max(0, Math.floor(now)) % 2 ** 48).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-`;
}

/**
 * Returns the UUID of a time and ten bytes from `at`, in which four bits become the version and two
 * the variant.
 */
function layout(time: string, bytes: DataView, at: number): string {
  const hex = (index: number, keep = 0xff, set = 0) =>
    octets[(bytes.getUint8(at + index) & keep) | set];
  const last = `${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`;
  return `${time}${hex(0, 0x0f, 0x70)}${hex(1)}-${hex(2, 0x3f, 0x80)}${hex(3)}-${last}`;
}

const octets: readonly string[] = Object.freeze(
  Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0")),
);
