import type { Clock } from "../process/clock.ts";
import type { Variables } from "../process/environment.ts";
import { isError, jsonText, membersText, readMember, startWalk } from "./json-text.ts";
import {
  type Fields,
  fieldsOf,
  type LogContext,
  noFields,
  type RecordRules,
} from "./log-context.ts";
import type { LogLevel } from "./logger.ts";
import { renaming } from "./record-names.ts";
import { cut, harmless, quoted } from "./redaction.ts";

/** Limits on the parts of a line, which keep it below the 256 KiB of one CloudWatch event. */
export const recordLimits = Object.freeze({
  msgLength: 8_192,
  dataCharacters: 49_152,
});

export type Print = (
  level: LogLevel,
  logger: { readonly context: LogContext },
  msg: unknown,
  data: unknown,
) => void;

/** Writes a record as one line of JSON: `level`, the context, `msg`, the data, `time`. */
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

export function recordFields(
  context: LogContext,
  msg: unknown,
  data: unknown,
  rules: RecordRules,
): Record<string, unknown> {
  return JSON.parse(`{${bodyText(context, msg, data, rules)}}`);
}

function bodyText(context: LogContext, msg: unknown, data: unknown, rules: RecordRules): string {
  const fields = fieldsOf(data, "data");
  if (typeof msg === "string") {
    // Reads `context.text` first, because that determines the result of `context.has`.
    const start = context.text + (rules.messages.get(msg) ?? learnMessage(msg, rules));
    return (
      start +
      (plainText(fields, context, rules) ??
        dataText(fields, recordLimits.dataCharacters, context, rules).text)
    );
  }
  // Plain JavaScript may pass any message. An error also becomes a data field.
  const thrown =
    typeof msg === "object" && msg !== null && isError(msg) ? errorField(msg, fields) : noFields;
  const { text, left } = dataText(fields, recordLimits.dataCharacters, context, rules);
  const said = msgText(spoken(msg, rules));
  return `${context.text}"msg":${said}${text}${dataText(thrown, left, context, rules).text}`;
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

/** The field is `error`, or `msg`, written `data_msg`, if data has an `error`. */
function errorField(error: Error, { names }: Fields): Fields {
  const name = names.includes("error") ? "msg" : "error";
  return { source: { [name]: error }, names: [name] };
}

const plainLimits = Object.freeze({
  fields: 16,
  characters: 256,
  rememberedMessages: 200,
  messageLength: 64,
});

/** Fast path for nearly all data: a few short plain values. A comma precedes each field. */
function plainText(
  { source, names }: Fields,
  context: LogContext,
  rules: RecordRules,
): string | undefined {
  if (names.length > plainLimits.fields || rules.redaction.root.length > 0) return undefined;
  let text = "";
  try {
    for (const name of names) {
      const value = source[name];
      if (value === undefined) continue;
      const json = rules.plainMember(name)?.json;
      if (json === undefined || /^[vV]alue$/.test(name) || isTaken(name, context, rules))
        return undefined;
      if (typeof value === "string") {
        if (value.length > plainLimits.characters || !harmless.test(value)) return undefined;
        text += `,${json}"${value}"`;
      } else if (typeof value === "boolean" || Number.isFinite(value)) text += `,${json}${value}`;
      else return undefined;
    }
  } catch {
    return undefined; // a getter threw
  }
  return text;
}

/** Returns the fields, each after a comma, and the number of characters left. */
function dataText(
  { source, names }: Fields,
  characters: number,
  context: LogContext,
  rules: RecordRules,
): { readonly text: string; readonly left: number } {
  const walk = startWalk(rules.redaction, characters);
  walk.within.push(source);
  const taken = (name: string) => isTaken(name, context, rules);
  const nameOf = names.some(taken) ? renaming("data", names, taken) : undefined;
  const text = membersText(source, names, walk, walk.redaction.root, nameOf);
  return { text: text === "" ? "" : `,${text}`, left: walk.left };
}

function isTaken(name: string, context: LogContext, { reserved, isTaken }: RecordRules): boolean {
  return reserved.has(name) || context.has(name) || isTaken?.(name) === true;
}

type TimeNames = readonly ["time"] | readonly ["time", "timestamp"];

/**
 * In Lambda's JSON log format, the platform treats a line without `timestamp` as INFO and may drop
 * it, even an error.
 */
export function timeNames(env: Variables): TimeNames {
  return env["AWS_LAMBDA_LOG_FORMAT"]?.trim().toUpperCase() === "JSON"
    ? ["time", "timestamp"]
    : ["time"];
}

/** Creates a function that returns the time as members of a record, once per millisecond. */
export function createTimeFields(names: TimeNames, clock?: Clock): () => string {
  let last = Number.NaN;
  let text = "";
  return () => {
    const now = clock?.now() ?? Date.now();
    if (now !== last) {
      const time = new Date(now).toISOString();
      text = names.map((name) => `"${name}":"${time}"`).join(",");
      last = now;
    }
    return text;
  };
}
