import type { Clock } from "../process/clock.ts";
import { isError, jsonText, membersText, readMember, startWalk, type Walk } from "./json-text.ts";
import { type Fields, fieldsOf, type LogContext, noFields, type RecordRules } from "./log-context.ts";
import type { LogLevel } from "./logger.ts";
import { cut, quoted } from "./quoted-text.ts";
import { renaming } from "./record-names.ts";

/** How long the parts of a line may become. With all of it used up a line stays under 256 KiB, what CloudWatch takes as one event. */
export const recordLimits = Object.freeze({
  /** UTF-16 units of `msg`; the rest is cut, saying how much. */
  msgLength: 8_192,
  /** Characters of JSON for the data of one call. */
  dataCharacters: 49_152,
});

/** Prints a record, or does not, by its level. */
export type Print = (level: LogLevel, logger: { readonly context: LogContext }, msg: unknown, data: unknown) => void;

/**
 * Writes a record as one line of JSON: `level`, the context, `msg`, the data, `time`. Data named as
 * one of these or as a field of the context is written as `data_<name>`: it overwrites nothing and is not lost.
 */
export function recordText(
  level: LogLevel,
  context: LogContext,
  msg: unknown,
  data: unknown,
  timeFields: string,
  rules: RecordRules,
): string {
  return `{"level":"${level}",${bodyText(context, msg, data, rules)},${timeFields}}`;
}

/** Gives context, `msg` and data of a record as one object of plain, bounded, redacted values. */
export function recordFields(context: LogContext, msg: unknown, data: unknown, rules: RecordRules): Record<string, unknown> {
  // Safe: the text is that of an object, as its braces say.
  return JSON.parse(`{${bodyText(context, msg, data, rules)}}`) as Record<string, unknown>;
}

function bodyText(context: LogContext, msg: unknown, data: unknown, rules: RecordRules): string {
  const walk = startWalk(rules.redaction, recordLimits.dataCharacters);
  const fields = fieldsOf(data, "data");
  if (typeof msg === "string") return `${context.text}"msg":${msgText(msg)}${dataText(fields, walk, context, rules)}`;
  // Plain JavaScript gives anything as the message; an error is data as well.
  const said = spoken(msg, walk);
  const thrown = typeof msg === "object" && msg !== null && isError(msg) ? errorField(msg, fields) : noFields;
  return `${context.text}"msg":${msgText(said)}${dataText(fields, walk, context, rules)}${dataText(thrown, walk, context, rules)}`;
}

function msgText(msg: string): string {
  return quoted(cut(msg, recordLimits.msgLength));
}

function spoken(msg: unknown, walk: Walk): string {
  if (msg === undefined) return "";
  if (typeof msg !== "object" || msg === null) return String(msg);
  const message = isError(msg) ? readMember(msg, "message") : undefined;
  return typeof message === "string"
    ? message
    : jsonText(msg, startWalk(walk.redaction, recordLimits.msgLength), walk.redaction.root);
}

/** As `msg`, which becomes `data_msg`, where the data has an `error` of its own. */
function errorField(error: Error, { names }: Fields): Fields {
  const name = names.includes("error") ? "msg" : "error";
  return { source: { [name]: error }, names: [name] };
}

/** Each field with a comma before it. */
function dataText({ source, names }: Fields, walk: Walk, context: LogContext, rules: RecordRules): string {
  if (names.length === 0) return "";
  walk.within.push(source);
  const isTaken = (name: string) => rules.reserved.has(name) || context.has(name) || rules.isTaken?.(name) === true;
  const text = membersText(source, names, walk, walk.redaction.root, renaming("data", names, isTaken));
  walk.within.pop();
  return text === "" ? "" : `,${text}`;
}

/** Names under which a record has its time. */
export type TimeNames = readonly ["time"] | readonly ["time", "timestamp"];

/**
 * Finds under which names the time is needed: `time`, and in Lambda's JSON log format `timestamp` as well, without which
 * the platform takes a line for INFO and may drop it, errors too.
 */
export function timeNames(env: Readonly<Record<string, string | undefined>>): TimeNames {
  return env["AWS_LAMBDA_LOG_FORMAT"]?.trim().toUpperCase() === "JSON" ? ["time", "timestamp"] : ["time"];
}

/** Creates a function that gives the clock's time in ISO 8601, UTC, as members of a record. Many lines share one: it is written once. */
export function createTimeFields(clock: Clock, names: TimeNames): () => string {
  let last = Number.NaN;
  let text = "";
  return () => {
    const now = clock.now();
    if (now !== last) {
      const time = new Date(now).toISOString();
      text = names.map((name) => `"${name}":"${time}"`).join(",");
      last = now;
    }
    return text;
  };
}
