export type LogRecord = Readonly<Record<string, unknown>>;

export interface LineRecords {
  readonly records: readonly LogRecord[];
  /** Whether the line looks like a keelson record but cannot be parsed. */
  readonly isBroken: boolean;
}

const mostDepth = 5;
/**
 * Members that contain records: CloudWatch and Logs Insights, Docker, Fluent Bit, journald,
 * queries.
 */
const wrappers = ["@message", "message", "log", "MESSAGE", "value", "line", "events", "results"];
/** Start of a member in a JSON document of several lines, as the AWS CLI prints it. */
const memberStart = /^"(?:@message|message|log|MESSAGE|value|line)"\s*:\s*(?=")/;

/**
 * Returns the records in a line of a log. Ignores the text around records: time and stream
 * (`aws logs tail`), container (`kubectl logs --prefix`, `docker compose logs`), a collector's own
 * JSON, AWS CLI output, a CSV cell. Never throws.
 */
export function recordsOf(line: string): LineRecords {
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

export function member(record: LogRecord, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
