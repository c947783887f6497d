import { randomUUID } from "node:crypto";
import { isRecord } from "../../base/errors/option-table.ts";
import { detected, type Input, parsed, validationError } from "../service/service.ts";

const most = 10;
const longestBytes = 262_144;

export interface BusEvent {
  readonly version: "0";
  readonly id: string;
  readonly "detail-type": string;
  readonly source: string;
  readonly account: string;
  /** ISO 8601, in whole seconds. */
  readonly time: string;
  readonly region: string;
  readonly resources: readonly string[];
  readonly detail: Input;
}

interface EventOrigin extends Pick<BusEvent, "account" | "region"> {
  readonly nowMs: number;
}

/**
 * An invalid entry does not affect the others.
 * @throws ServiceError for more than 10 entries or 256 KiB.
 */
export function readEntries(entries: unknown, origin: EventOrigin) {
  const isList = Array.isArray(entries) && entries.length >= 1 && entries.length <= most;
  if (!isList || !entries.every(isRecord))
    throw detected(`'entries' has to be a list of 1 to ${most} entries`);
  const bytes = entries.reduce((sum, entry) => sum + bytesOf(entry), 0);
  if (bytes > longestBytes)
    throw validationError("Total size of the entries in the request is over the limit.");
  return entries.map((entry) => readEntry(entry, origin));
}

function readEntry(entry: Input, { account, region, nowMs }: EventOrigin) {
  for (const member of ["Source", "DetailType", "Detail"]) {
    const reason = `Parameter ${member} is not valid. Reason: ${member} is a required argument.`;
    if (typeof entry[member] !== "string" || entry[member] === "")
      return refused("InvalidArgument", reason);
  }
  const detail = parsed(String(entry["Detail"]));
  if (!isRecord(detail)) return refused("MalformedDetail", "Detail is malformed.");
  const { Time, Resources, EventBusName = "default" } = entry;
  const time = new Date(typeof Time === "number" ? Time * 1000 : nowMs);
  if (Number.isNaN(time.getTime()))
    return refused("InvalidArgument", "Parameter Time is not valid.");
  const event: BusEvent = {
    version: "0",
    id: randomUUID(),
    "detail-type": String(entry["DetailType"]),
    source: String(entry["Source"]),
    account,
    time: time.toISOString().replace(/\.\d+Z$/, "Z"),
    region,
    resources: Array.isArray(Resources) ? Resources.map(String) : [],
    detail,
  };
  return { bus: String(EventBusName), event };
}

/** By EventBridge's rule: the bytes of its strings, plus 14 for a time. */
function bytesOf({ Source, DetailType, Detail, Resources, Time }: Input) {
  const texts = [Source, DetailType, Detail, ...(Array.isArray(Resources) ? Resources : [])];
  return Buffer.byteLength(texts.join("")) + (Time === undefined ? 0 : 14);
}

export function refused(ErrorCode: string, ErrorMessage: string) {
  return { ErrorCode, ErrorMessage };
}
