import type { LogRecord } from "./log-records.ts";

/** What is kept of a record: its known fields, bounded. */
export interface TraceLine extends Texts, Numbers {
  /** When it was written, in milliseconds since the epoch. */
  readonly ms: number;
  readonly msg: string;
  readonly replayed?: boolean;
  readonly aborted?: boolean;
  /** IDs of events and jobs that could not be dispatched. */
  readonly left?: readonly string[];
}

type Texts = { readonly [Name in (typeof textFields)[number]]?: string };
type Numbers = { readonly [Name in (typeof numberFields)[number]]?: number };

/** How long a text may be; IDs have at most 128 characters. */
const longestText = 256;
/** Beyond 31 years a number is no duration, and no time is more than some 250,000 years away: sums of both stay what a Date can be. */
const [longestMs, farthestMs] = [1e12, 8e15];
/** How many events or jobs a line may name. */
const mostLeft = 200;

/** IDs, names and reasons, in the order in which lines of one time are sorted. */
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

/** Reads a record; `undefined` for one that says nothing of a trace: without a time, or written by a browser. */
export function traceLine(record: LogRecord): TraceLine | undefined {
  const { msg, source } = record;
  const ms = msOf(record["time"] ?? record["timestamp"]);
  // What a browser has sent is logged as it says: it may call itself anything, but not say where it comes from.
  if (
    typeof msg !== "string" ||
    msg.length > longestText ||
    ms === undefined ||
    source === "client"
  )
    return undefined;
  const line: Record<string, unknown> = { ms, msg };
  for (const name of textFields) {
    const value = Object.hasOwn(record, name) ? record[name] : undefined;
    if (typeof value === "string" && value !== "") line[name] = value.slice(0, longestText);
  }
  for (const name of numberFields) {
    const value = Object.hasOwn(record, name) ? record[name] : undefined;
    if (typeof value === "number" && value >= 0 && value <= longestMs) line[name] = value;
  }
  for (const name of ["replayed", "aborted"]) if (record[name] === true) line[name] = true;
  const left =
    msg === "event.dispatch_failed"
      ? record["events"]
      : msg === "job.dispatch_failed"
        ? record["jobs"]
        : undefined;
  if (Array.isArray(left)) line["left"] = left.slice(0, mostLeft).flatMap(idOf);
  return line as unknown as TraceLine; // safe: it has what it has to, and each field as it is declared
}

/** `<type> <ID>`, as lines name what is left. */
function idOf(text: unknown): string[] {
  return typeof text === "string" && text.length <= longestText
    ? [text.slice(text.lastIndexOf(" ") + 1)]
    : [];
}

function msOf(time: unknown): number | undefined {
  const ms = typeof time === "string" ? Date.parse(time) : time;
  return typeof ms === "number" && Math.abs(ms) <= farthestMs ? ms : undefined;
}

/** The lines in the order of time, each once, whatever the order in which they came. */
export function inOrder(lines: readonly TraceLine[]): TraceLine[] {
  const byText = new Map(lines.map((line) => [JSON.stringify(line), line]));
  return [...byText]
    .sort(([one, { ms, msg }], [other, { ms: otherMs, msg: otherMsg }]) => {
      const byTime = ms - otherMs || Number(isEnd(msg)) - Number(isEnd(otherMsg));
      return byTime || (one < other ? -1 : 1);
    })
    .map(([, line]) => line);
}

/** Whether a run is over with this line: at one time it is the last. */
function isEnd(msg: string): boolean {
  return msg.endsWith(".completed") || msg.startsWith("queue.");
}
