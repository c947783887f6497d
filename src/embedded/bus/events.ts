import { randomUUID } from "node:crypto";
import { isRecord } from "../../base/errors/option-table.ts";
import { entryBytes, serviceSizes } from "../../base/sizes/service-sizes.ts";
import { detected, type Input, parsed, ServiceError, validationError } from "../service/service.ts";

const most = 10;

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
 * @throws ServiceError for more than 10 entries or 1 MiB in total.
 */
export function readEntries(entries: unknown, origin: EventOrigin) {
  const isList = Array.isArray(entries) && entries.length >= 1 && entries.length <= most;
  if (!isList || !entries.every(isRecord))
    throw detected(`'entries' has to be a list of 1 to ${most} entries`);
  const bytes = entries.reduce((sum, entry) => sum + entryBytes(entry), 0);
  if (bytes > serviceSizes.eventBridgeEntry.maxBytes)
    throw validationError("Total size of the entries in the request exceeds the limit.");
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

export function refused(ErrorCode: string, ErrorMessage: string) {
  return { ErrorCode, ErrorMessage };
}

export type EventPattern = (event: unknown) => boolean;

type Condition = (values: readonly unknown[]) => boolean;

/** Knows exact values, `prefix`, `anything-but` and `exists`. @throws ServiceError */
export function readEventPattern(text: string): EventPattern {
  const pattern = parsed(text);
  if (pattern === undefined) throw invalidPattern("It is not JSON");
  if (!isRecord(pattern)) throw invalidPattern("Filter is not an object");
  return readFields(pattern, "");
}

export function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function readFields(pattern: Input, place: string): EventPattern {
  const fields = Object.entries(pattern).map(([name, expected]): EventPattern => {
    const path = place === "" ? name : `${place}.${name}`;
    const fits = readField(expected, path);
    return (event) => fits(fieldOf(event, name));
  });
  if (fields.length === 0)
    throw invalidPattern(`Empty objects are not allowed${place === "" ? "" : ` at ${place}`}`);
  return (event) => fields.every((fits) => fits(event));
}

function readField(expected: unknown, place: string): EventPattern {
  if (isRecord(expected)) {
    const fits = readFields(expected, place);
    return (value) => (Array.isArray(value) && value.length > 0 ? value.some(fits) : fits(value));
  }
  if (!Array.isArray(expected)) throw invalidPattern(`"${place}" must be an object or an array`);
  if (expected.length === 0) throw invalidPattern(`Empty arrays are not allowed at "${place}"`);
  const conditions = expected.map((condition) => readCondition(condition, place));
  return (value) => {
    const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return conditions.some((fits) => fits(values));
  };
}

function readCondition(condition: unknown, place: string): Condition {
  if (isLeaf(condition)) return (values) => values.includes(condition);
  const [[operator, operand] = [], ...more] = isRecord(condition) ? Object.entries(condition) : [];
  if (more.length === 0) {
    if (operator === "prefix" && typeof operand === "string") return beginsWith(operand);
    if (operator === "exists" && typeof operand === "boolean")
      return (values) => values.length > 0 === operand;
    if (operator === "anything-but") return anythingBut(operand, place);
  }
  throw invalidPattern(
    `The embedded stack does not support ${JSON.stringify(condition)} at "${place}": use exact values, prefix, exists or anything-but`,
  );
}

function anythingBut(operand: unknown, place: string): Condition {
  const prefix = fieldOf(operand, "prefix");
  if (typeof prefix === "string") {
    const begins = beginsWith(prefix);
    return (values) => values.some((value) => !begins([value]));
  }
  const excluded: unknown[] = Array.isArray(operand) ? operand : [operand];
  if (excluded.length === 0 || !excluded.every(isLeaf))
    throw invalidPattern(`anything-but has no values at "${place}"`);
  return (values) => values.some((value) => !excluded.includes(value));
}

function beginsWith(prefix: string): Condition {
  return (values) => values.some((value) => typeof value === "string" && value.startsWith(prefix));
}

function isLeaf(value: unknown) {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function invalidPattern(reason: string) {
  return new ServiceError(
    "com.amazonaws.eventbridge#InvalidEventPatternException",
    `Event pattern is not valid. Reason: ${reason.slice(0, 500)}`,
  );
}
