/** The trace that a request belongs to. */
export interface Trace {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** The caller's span: 16 hexadecimal digits, lower case; `undefined` if the caller names none. */
  readonly spanId: string | undefined;
  /** Whether the caller records the trace. */
  readonly sampled: boolean;
}

type Lookup = Readonly<Record<string, string | undefined>>;

const maxHeaderLength = 512;

/**
 * Reads the trace from `traceparent` (W3C), else from `x-amzn-trace-id`, else from what Lambda puts
 * into the environment. A malformed one counts as absent.
 *
 * @param headers names in lower case
 * @param env the process's environment; only `_X_AMZN_TRACE_ID` is read
 */
export function parseTrace(headers: Lookup, env: Lookup = {}): Trace | undefined {
  return parseTraceparent(headers["traceparent"]) ?? parseXRay(headers["x-amzn-trace-id"]) ?? parseXRay(env["_X_AMZN_TRACE_ID"]);
}

/** `00-<trace>-<span>-<flags>`. Versions above 00 may have more after it, ff is none (W3C Trace Context 3.2 and 4.3). */
function parseTraceparent(header: string | undefined): Trace | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  if (!/^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-.*)?$/.test(header)) return undefined;
  if (header.startsWith("00") && header.length > 55) return undefined;
  return {
    traceId: header.slice(3, 35),
    spanId: header.slice(36, 52),
    sampled: (Number.parseInt(header.slice(53, 55), 16) & 1) === 1,
  };
}

/** `Root=1-<8 digits>-<24 digits>;Parent=<16 digits>;Sampled=1`, in any order, among others. */
function parseXRay(header: string | undefined): Trace | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  const fields = { root: "", parent: "", sampled: "" };
  for (const field of header.split(";")) {
    const at = field.indexOf("=");
    const name = field.slice(0, at).trim().toLowerCase();
    if (name === "root" || name === "parent" || name === "sampled") fields[name] = field.slice(at + 1).trim();
  }
  const root = /^1-([\da-f]{8})-([\da-f]{24})$/i.exec(fields.root);
  if (root === null) return undefined;
  const traceId = `${root[1]}${root[2]}`.toLowerCase();
  if (/^0+$/.test(traceId)) return undefined;
  const spanId = /^(?!0{16})[\da-f]{16}$/i.test(fields.parent) ? fields.parent.toLowerCase() : undefined;
  return { traceId, spanId, sampled: fields.sampled === "1" };
}
