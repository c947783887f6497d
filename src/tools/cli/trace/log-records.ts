export interface TraceLine extends Texts, Numbers {
  readonly ms: number;
  readonly msg: string;
  readonly replayed?: boolean;
  readonly aborted?: boolean;
  /** IDs of events and jobs that keelson could not dispatch. */
  readonly left?: readonly string[];
}

type Texts = { readonly [Name in (typeof textFields)[number]]?: string };
type Numbers = { readonly [Name in (typeof numberFields)[number]]?: number };

/** IDs have at most 128 characters. */
const longestText = 256;
/** Largest duration and time. Their sum still fits in a Date. */
const [longestMs, farthestMs] = [1e12, 8e15];
const mostLeft = 200;

/** The order of the fields breaks ties between lines of the same time. */
const textFields = [
  "requestId",
  "trace_id",
  "tenantId",
  "handler",
  "origRequestId",
  "causedBy",
  "eventId",
  "jobId",
  "firesAt",
  "event",
  "publishedId",
  "job",
  "enqueuedId",
  "scheduledId",
  "dueAt",
  "canceledId",
  "channel",
  "deliveryId",
  "method",
  "route",
  "outcome",
  "error",
  "message",
  "reason",
  "queue",
  "step",
  "stepKey",
  "type",
  "mergedId",
  "into",
] as const;
const numberFields = ["status", "durationMs", "attempt", "afterMs", "attempts"] as const;

export function traceLine(record: LogRecord): TraceLine | undefined {
  const { msg, source } = record;
  const ms = msOf(record["time"] ?? record["timestamp"]);
  if (typeof msg !== "string" || msg.length > longestText || ms === undefined) return undefined;
  // Ignores records from browsers, because the browser chooses every field except `source`.
  if (source === "client") return undefined;
  const line: Record<string, unknown> = { ms, msg };
  for (const name of textFields) {
    const value = member(record, name);
    if (typeof value === "string" && value !== "") line[name] = value.slice(0, longestText);
  }
  for (const name of numberFields) {
    const value = member(record, name);
    if (typeof value === "number" && value >= 0 && value <= longestMs) line[name] = value;
  }
  for (const name of ["replayed", "aborted"]) if (record[name] === true) line[name] = true;
  const kind = /^(event|job)\.dispatch_failed$/.exec(msg)?.[1];
  const left = kind && record[`${kind}s`];
  if (Array.isArray(left)) line["left"] = left.slice(0, mostLeft).flatMap(idOf);
  // Safe cast: `ms` and `msg` are set, and every other field has its declared type.
  return line as unknown as TraceLine;
}

/** Returns the ID in a string `<type> <ID>`. */
function idOf(text: unknown) {
  return typeof text === "string" && text.length <= longestText
    ? [text.slice(text.lastIndexOf(" ") + 1)]
    : [];
}

function msOf(time: unknown): number | undefined {
  const ms = typeof time === "string" ? Date.parse(time) : time;
  return typeof ms === "number" && Math.abs(ms) <= farthestMs ? ms : undefined;
}

export function inOrder(lines: readonly TraceLine[]): TraceLine[] {
  const byText = new Map(lines.map((line) => [JSON.stringify(line), line]));
  return [...byText]
    .sort(([oneText, one], [otherText, other]) => {
      const byTime = one.ms - other.ms || isEnd(one) - isEnd(other);
      return byTime || (oneText < otherText ? -1 : 1);
    })
    .map(([, line]) => line);
}

/** Sorts the line last among lines of the same time. */
function isEnd({ msg }: TraceLine) {
  return Number(/\.completed$|^queue\./.test(msg));
}

export type LogRecord = Readonly<Record<string, unknown>>;

const mostDepth = 5;
/** Members with records: CloudWatch, Logs Insights, Docker, Fluent Bit, journald, queries. */
const wrappers = ["@message", "message", "log", "MESSAGE", "value", "line", "events", "results"];
/** Start of a member in a JSON document of several lines, as the AWS CLI prints it. */
const memberStart = /^"(?:@message|message|log|MESSAGE|value|line)"\s*:\s*(?=")/;

/**
 * Returns the records in a log line, and whether it looks like a record that cannot be parsed.
 * Ignores the text around records: time and stream (`aws logs tail`), container (`kubectl logs
 * --prefix`, `docker compose logs`), a collector's own JSON, AWS CLI output, a CSV cell. Never
 * throws.
 */
export function recordsOf(line: string) {
  const records = read(line, 0);
  return { records, isBroken: records.length === 0 && looksLikeRecord.test(line) };
}

const looksLikeRecord = /\\?"{1,2}msg\\?"{1,2}\s*:/;

function read(text: string, depth: number): readonly LogRecord[] {
  if (depth > mostDepth) return [];
  const wrapped = wrappedText(text);
  if (wrapped !== undefined) {
    const inner = parse(wrapped);
    return typeof inner === "string" ? read(inner, depth + 1) : [];
  }
  const value = /^\s*\[\s*[[{]/.test(text) ? parse(text) : undefined;
  return unwrap(value ?? objectIn(text), depth);
}

/** Parses in steps, because one regular expression takes quadratic time on blanks. */
function wrappedText(text: string): string | undefined {
  const line = text.trim();
  const start = memberStart.exec(line)?.[0].length;
  if (start === undefined) return undefined;
  const value = line.slice(start, line.endsWith(",") ? -1 : undefined).trimEnd();
  return value.length > 1 && value.endsWith('"') ? value : undefined;
}

function objectIn(text: string): unknown {
  const end = text.lastIndexOf("}") + 1;
  let start = text.indexOf("{");
  for (let attempt = 0; attempt < 3 && start >= 0 && start < end; attempt += 1) {
    const inner = text.slice(start, end);
    const value =
      parse(inner) ?? (inner.startsWith('{""') ? parse(inner.replaceAll('""', '"')) : undefined);
    if (value !== undefined) return value;
    start = text.indexOf("{", start + 1);
  }
  return undefined;
}

function unwrap(value: unknown, depth: number): readonly LogRecord[] {
  if (depth > mostDepth) return [];
  if (typeof value === "string") return value.includes("{") ? read(value, depth + 1) : [];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item: unknown) => unwrap(item, depth + 1));
  const record = value as LogRecord; // safe cast: its members stay `unknown`
  if (typeof member(record, "msg") === "string") return [record];
  for (const name of wrappers) {
    const inner = unwrap(member(record, name), depth + 1);
    if (inner.length > 0) return inner;
  }
  // Powertools' formatter writes `message` and `timestamp`.
  const message = member(record, "message");
  return typeof message === "string" && member(record, "timestamp") !== undefined
    ? [{ ...record, msg: message }]
    : [];
}

function member(record: LogRecord, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
