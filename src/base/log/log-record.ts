import type { Clock } from "../process/clock.ts";
import { isError, jsonText, membersText, readMember, startWalk } from "./json-text.ts";
import {
  type Fields,
  fieldsOf,
  type LogContext,
  noFields,
  type RecordRules,
} from "./log-context.ts";
import type { LogLevel } from "./logger.ts";
import { cut, isHarmless, quoted } from "./quoted-text.ts";
import { renaming } from "./record-names.ts";

/** How long the parts of a line may become. With all of it used up a line stays under 256 KiB, what CloudWatch takes as one event. */
export const recordLimits = Object.freeze({
  /** UTF-16 units of `msg`; the rest is cut, saying how much. */
  msgLength: 8_192,
  /** Characters of JSON for the data of one call. */
  dataCharacters: 49_152,
});

/** Prints a record, or does not, by its level. */
export type Print = (
  level: LogLevel,
  logger: { readonly context: LogContext },
  msg: unknown,
  data: unknown,
) => void;

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
export function recordFields(
  context: LogContext,
  msg: unknown,
  data: unknown,
  rules: RecordRules,
): Record<string, unknown> {
  // Safe: the text is that of an object, as its braces say.
  return JSON.parse(`{${bodyText(context, msg, data, rules)}}`) as Record<string, unknown>;
}

function bodyText(context: LogContext, msg: unknown, data: unknown, rules: RecordRules): string {
  const fields = fieldsOf(data, "data");
  if (typeof msg === "string") {
    // First, since it settles what `has` looks at.
    const start = context.text + (rules.messages.get(msg) ?? learnMessage(msg, rules));
    return (
      start +
      (plainText(fields, context, rules) ??
        dataText(fields, recordLimits.dataCharacters, context, rules).text)
    );
  }
  // Plain JavaScript gives anything as the message; an error is data as well.
  const said = spoken(msg, rules);
  const thrown =
    typeof msg === "object" && msg !== null && isError(msg) ? errorField(msg, fields) : noFields;
  const { text, left } = dataText(fields, recordLimits.dataCharacters, context, rules);
  return `${context.text}"msg":${msgText(said)}${text}${dataText(thrown, left, context, rules).text}`;
}

function learnMessage(msg: string, { messages }: RecordRules): string {
  const text = `"msg":${msgText(msg)}`;
  const { rememberedMessages, messageLength } = plainLimits;
  if (messages.size < rememberedMessages && msg.length <= messageLength) messages.set(msg, text);
  return text;
}

function msgText(msg: string): string {
  return quoted(cut(msg, recordLimits.msgLength));
}

function spoken(msg: unknown, { redaction }: RecordRules): string {
  if (msg === undefined) return "";
  if (typeof msg !== "object" || msg === null) return String(msg);
  const message = isError(msg) ? readMember(msg, "message") : undefined;
  return typeof message === "string"
    ? message
    : jsonText(msg, startWalk(redaction, recordLimits.msgLength), redaction.root);
}

/** As `msg`, which becomes `data_msg`, where the data has an `error` of its own. */
function errorField(error: Error, { names }: Fields): Fields {
  const name = names.includes("error") ? "msg" : "error";
  return { source: { [name]: error }, names: [name] };
}

/** Far within the limits. */
const plainLimits = Object.freeze({
  fields: 16,
  characters: 256,
  rememberedMessages: 200,
  messageLength: 64,
});

/**
 * What nearly all data is: a few short texts, numbers and booleans with nothing to bound, to escape, to redact or to rename; each
 * with a comma before it. `undefined` where it is other data.
 */
function plainText(
  { source, names }: Fields,
  context: LogContext,
  rules: RecordRules,
): string | undefined {
  if (names.length > plainLimits.fields || rules.redaction.root.length > 0) return undefined;
  let text = "";
  for (const name of names) {
    const value = readMember(source, name);
    if (value === undefined) continue;
    const { json, secret } = rules.redaction.member(name);
    if (secret || name === "value" || name === "Value" || isTaken(name, context, rules))
      return undefined;
    if (typeof value === "string") {
      if (value.length > plainLimits.characters || !isHarmless(value)) return undefined;
      text += `,${json}"${value}"`;
    } else if (typeof value === "boolean" || Number.isFinite(value)) text += `,${json}${value}`;
    else return undefined;
  }
  return text;
}

/** Each field with a comma before it, and how many characters are left after them. */
function dataText(
  { source, names }: Fields,
  characters: number,
  context: LogContext,
  rules: RecordRules,
): { readonly text: string; readonly left: number } {
  const walk = startWalk(rules.redaction, characters);
  walk.within.push(source);
  const nameOf = renaming("data", names, (name) => isTaken(name, context, rules));
  const text = membersText(source, names, walk, walk.redaction.root, nameOf);
  return { text: text === "" ? "" : `,${text}`, left: walk.left };
}

function isTaken(name: string, context: LogContext, { reserved, isTaken }: RecordRules): boolean {
  return reserved.has(name) || context.has(name) || isTaken?.(name) === true;
}

/** Names under which a record has its time. */
export type TimeNames = readonly ["time"] | readonly ["time", "timestamp"];

/**
 * Finds under which names the time is needed: `time`, and in Lambda's JSON log format `timestamp` as well, without which
 * the platform takes a line for INFO and may drop it, errors too.
 */
export function timeNames(env: Readonly<Record<string, string | undefined>>): TimeNames {
  return env["AWS_LAMBDA_LOG_FORMAT"]?.trim().toUpperCase() === "JSON"
    ? ["time", "timestamp"]
    : ["time"];
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
