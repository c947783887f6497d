import { writeSync } from "node:fs";
import { types } from "node:util";
import { systemCode } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import { isError, jsonText, membersText, readMember, startWalk, textLimits } from "./json-text.ts";
import type { LogLevel } from "./logger.ts";
import { metricNames, renaming, type TimeNames } from "./record-names.ts";
import { cut, harmless, quoted, type Redaction } from "./redaction.ts";

/** Limits on the parts of a line, which keep it below the 256 KiB of one CloudWatch event. */
export const recordLimits = Object.freeze({
  msgLength: 8_192,
  dataCharacters: 49_152,
});

/** Limits of the fast paths. */
export const plainLimits = Object.freeze({
  contextFields: 16,
  characters: 256,
  rememberedNames: 500,
  rememberedMessages: 200,
  messageLength: 64,
});

export interface RecordRules {
  readonly redaction: Redaction;
  /** The record's own names and {@link metricNames}. */
  readonly reserved: ReadonlySet<string>;
  /** Whether only context fields, not data fields, may have a name. Default: `false`. */
  readonly isTaken?: (name: string) => boolean;
  /** `undefined` if the value cannot be written as plain text. */
  readonly plainMember: (name: string) => PlainMember | undefined;
  /** Cache of `"msg":"text"` by message. Nearly all messages are constants. */
  readonly messages: Map<string, string>;
}

/** Caches the last value, because values such as a tenant repeat. */
interface PlainMember {
  readonly json: string;
  value: string;
  text: string;
}

export function createRecordRules(redaction: Redaction, ownNames: Iterable<string>): RecordRules {
  const reserved = new Set([...metricNames, ...ownNames]);
  const remembered = new Map<string, PlainMember>();
  const learn = (name: string): PlainMember | undefined => {
    const { json, secret } = redaction.member(name);
    if (secret || reserved.has(name) || json.length > plainLimits.characters) return undefined;
    const member = { json, value: "", text: `${json}"",` };
    if (remembered.size < plainLimits.rememberedNames) remembered.set(name, member);
    return member;
  };
  return {
    redaction,
    reserved,
    plainMember: (name) => remembered.get(name) ?? learn(name),
    messages: new Map(),
  };
}

/** The part of a `LogContext` that a record reads. */
export interface RecordContext {
  /** All fields, each followed by a comma. */
  readonly text: string;
  has(name: string): boolean;
}

export type Print = (
  level: LogLevel,
  logger: { readonly context: RecordContext },
  msg: unknown,
  data: unknown,
) => void;

/** Writes a record as one line of JSON: `level`, the context, `msg`, the data, `time`. */
export function recordText(
  level: LogLevel,
  context: RecordContext,
  msg: unknown,
  data: unknown,
  timeFields: string,
  rules: RecordRules,
): string {
  return `{"level":"${level}",${bodyText(context, msg, data, rules)},${timeFields}}`;
}

export function recordFields(
  context: RecordContext,
  msg: unknown,
  data: unknown,
  rules: RecordRules,
): Record<string, unknown> {
  return JSON.parse(`{${bodyText(context, msg, data, rules)}}`);
}

function bodyText(context: RecordContext, msg: unknown, data: unknown, rules: RecordRules): string {
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

/**
 * Fast path for nearly all data: short plain values. `membersText` writes any other value separately.
 * A comma precedes each field. `undefined` if fields have to be renamed or cut.
 */
function plainText(
  { source, names }: Fields,
  context: RecordContext,
  rules: RecordRules,
): string | undefined {
  const { redaction } = rules;
  if (names.length > textLimits.entries || redaction.root.length > 0) return undefined;
  let [text, left]: [string, number] = ["", recordLimits.dataCharacters];
  try {
    for (const name of names) {
      const value = source[name];
      if (value === undefined) continue;
      const json = rules.plainMember(name)?.json;
      if (left <= 0 || name === "value" || name === "Value" || isTaken(name, context, rules))
        return undefined;
      let member: string;
      if (json !== undefined && isPlain(value)) {
        member = typeof value === "string" ? `${json}"${value}"` : `${json}${value}`;
        left -= member.length + 1;
      } else {
        const walk = startWalk(redaction, left);
        walk.within.push(source);
        member = membersText({ [name]: value }, [name], walk, redaction.root);
        left = walk.left;
      }
      text += `,${member}`;
    }
  } catch {
    return undefined; // a getter threw
  }
  return left < 0 ? undefined : text;
}

function isPlain(value: unknown): boolean {
  return typeof value === "string"
    ? value.length <= plainLimits.characters && harmless.test(value)
    : typeof value === "boolean" || Number.isFinite(value);
}

/** Returns the fields, each after a comma, and the number of characters left. */
function dataText(
  { source, names }: Fields,
  characters: number,
  context: RecordContext,
  rules: RecordRules,
): { readonly text: string; readonly left: number } {
  const walk = startWalk(rules.redaction, characters);
  walk.within.push(source);
  const taken = (name: string) => isTaken(name, context, rules);
  const nameOf = names.some(taken) ? renaming("data", names, taken) : undefined;
  const text = membersText(source, names, walk, walk.redaction.root, nameOf);
  return { text: text === "" ? "" : `,${text}`, left: walk.left };
}

function isTaken(
  name: string,
  context: RecordContext,
  { reserved, isTaken }: RecordRules,
): boolean {
  return reserved.has(name) || context.has(name) || isTaken?.(name) === true;
}

interface Fields {
  readonly source: Readonly<Record<string, unknown>>;
  readonly names: readonly string[];
}

const noFields: Fields = Object.freeze({
  source: Object.freeze({}),
  names: Object.freeze([]),
});

/**
 * Finds the fields in data or a context, for which plain JavaScript may pass anything: an error
 * becomes the field `error`, any other value without fields the field `otherwise`.
 */
export function fieldsOf(given: unknown, otherwise: string): Fields {
  if (given === undefined || given === null) return noFields;
  if (typeof given !== "object") return oneField(otherwise, given);
  try {
    if (isObjectOfFields(given))
      return { source: given as Fields["source"], names: Object.keys(given) }; // safe: only read
    return oneField(isError(given) ? "error" : otherwise, given);
  } catch {
    // A Proxy trap threw.
    return oneField(otherwise, given);
  }
}

function oneField(name: string, value: unknown): Fields {
  return { source: { [name]: value }, names: [name] };
}

function isObjectOfFields(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) return true;
  const hasTextOfItsOwn =
    "toJSON" in given || Symbol.iterator in given || ArrayBuffer.isView(given) || isError(given);
  return !(hasTextOfItsOwn || types.isDate(given) || types.isBoxedPrimitive(given));
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

/**
 * Returns once the operating system has the line, before Lambda freezes the process or
 * `process.exit` ends it. Blocks while the reader of a pipe is slow. Never throws.
 */
export function writeToStandardOutput(line: string): void {
  const text = `${line}\n`;
  try {
    /* v8 ignore else -- tested in separate processes, which coverage does not follow */
    if (Object.hasOwn(process.stdout, "write")) process.stdout.write(text);
    else writeAll(text, writeSync);
  } catch {
    // The pipe has no reader left (EPIPE) or stdout is closed (EBADF). The line is lost.
  }
}

const standardOutput = 1;

type WriteSync = (descriptor: number, bytes: Uint8Array, offset: number, length: number) => number;

/** Buffer for lines that fit: faster than `writeSync` of a string, which first counts its bytes. */
const scratch = Buffer.allocUnsafeSlow(16_384);
const encoder = new TextEncoder();

/** Writes all of the text to stdout, in pieces if the pipe is full. @throws Errors of `write`. */
export function writeAll(text: string, write: WriteSync): void {
  const fits = text.length * 3 <= scratch.byteLength; // a UTF-16 code unit takes at most three bytes
  const bytes = fits ? scratch : Buffer.from(text);
  const length = fits ? encoder.encodeInto(text, scratch).written : bytes.byteLength;
  let written = 0;
  while (written < length) {
    try {
      written += write(standardOutput, bytes, written, length - written);
    } catch (error) {
      // Node or another process may have made the pipe non-blocking.
      if (systemCode(error) !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
