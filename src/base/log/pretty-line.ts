import type { LogLevel } from "./logger.ts";
import { visible } from "./redaction.ts";

/**
 * Writes a record for people: time, level, message, `name=value`, then indented stacks. Text from
 * outside cannot imitate a record, because only records start a line.
 */
export function prettyLine(record: string, colour: boolean): string {
  // Safe: recordText writes these three members, and no field has their names.
  const { level, msg, time, ...fields } = JSON.parse(record) as Record<string, unknown> & {
    readonly level: LogLevel;
    readonly msg: string;
    readonly time: string;
  };
  const paint: Paint = (code, text) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const stacks: string[] = [];
  const shown = Object.entries(fields).map(([name, value]) => {
    if (name === "stack" && isStack(value)) {
      stacks.push(value);
      return "";
    }
    return ` ${paint(faint, `${visible(name)}=`)}${visible(fieldText(value, stacks))}`;
  });
  const head = `${paint(faint, time.slice(11, 23))} ${paint(colours[level], level.toUpperCase().padEnd(5))} ${visible(msg)}`;
  return `${head}${shown.join("")}${stacks.map((stack) => indented(stack, paint)).join("")}`;
}

type Paint = (code: number, text: string) => string;

const faint = 2;
const colours: Readonly<Record<LogLevel, number>> = { debug: 36, info: 32, warn: 33, error: 31 };

function isStack(value: unknown): value is string {
  return typeof value === "string" && !bareWord.test(value);
}

const bareWord = /^[\w.:/@+-]+$/;

/** Writes a word unquoted, anything else as JSON, and moves stacks below the line. */
function fieldText(value: unknown, stacks: string[]): string {
  if (typeof value === "string" && bareWord.test(value)) return value;
  return JSON.stringify(value, (name, inner: unknown) => {
    if (name !== "stack" || !isStack(inner)) return inner;
    stacks.push(inner);
    return undefined;
  });
}

function indented(stack: string, paint: Paint): string {
  return stack
    .split("\n")
    .map((line) => `\n    ${paint(faint, visible(line.trim()))}`)
    .join("");
}
