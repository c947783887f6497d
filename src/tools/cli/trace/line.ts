import { type LogRecord, member } from "./log-records.ts";

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
  "unscheduledId",
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

/** Returns the ID of a text `<type> <ID>`. */
function idOf(text: unknown): string[] {
  return typeof text === "string" && text.length <= longestText
    ? [text.slice(text.lastIndexOf(" ") + 1)]
    : [];
}

function msOf(time: unknown): number | undefined {
  const ms = typeof time === "string" ? Date.parse(time) : time;
  return typeof ms === "number" && Math.abs(ms) <= farthestMs ? ms : undefined;
}

/** Sorts by time and removes duplicates. */
export function inOrder(lines: readonly TraceLine[]): TraceLine[] {
  const byText = new Map(lines.map((line) => [JSON.stringify(line), line]));
  return [...byText]
    .sort(([one, { ms, msg }], [other, { ms: otherMs, msg: otherMsg }]) => {
      const byTime = ms - otherMs || Number(isEnd(msg)) - Number(isEnd(otherMsg));
      return byTime || (one < other ? -1 : 1);
    })
    .map(([, line]) => line);
}

/** Whether the line sorts last among lines of the same time. */
function isEnd(msg: string): boolean {
  return msg.endsWith(".completed") || msg.startsWith("queue.");
}
