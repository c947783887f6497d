import type { Clock } from "../process/clock.ts";
import type { Environment, Variables } from "../process/environment.ts";
import { membersText, startWalk } from "./json-text.ts";
import type { PowertoolsThreshold } from "./load-powertools.ts";
import {
  createRecordRules,
  createTimeFields,
  fieldsOf,
  type Print,
  plainLimits,
  type RecordContext,
  type RecordRules,
  recordLimits,
  recordText,
  writeToStandardOutput,
} from "./log-record.ts";
import { createThreshold } from "./log-threshold.ts";
import { type Logger, type LogLevel, type LogThreshold, levelNumbers, levelOf } from "./logger.ts";
import { createPowertoolsPrint, type PowertoolsLogger } from "./powertools-logger.ts";
import { prettyLine } from "./pretty-line.ts";
import { renaming, timeNames } from "./record-names.ts";
import { createRedaction, cut, harmless, quoted } from "./redaction.ts";

export type { PowertoolsLogger } from "./powertools-logger.ts";

export interface ServerLoggerOptions {
  readonly environment: Environment;
  readonly level?: LogLevel;
  readonly redact?: readonly string[];
  readonly powertools?: PowertoolsLogger;
  /** From `loadPowertools`; controls level and sampling. */
  readonly powertoolsThreshold?: PowertoolsThreshold | undefined;
  /** `LOG_LEVEL`, `LOG_FORMAT`, `NO_COLOR`, `AWS_LAMBDA_LOG_*`, `POWERTOOLS_*`. */
  readonly env: Variables;
  /** Receives each line, without a line end. Default: writes to stdout. */
  readonly write?: (line: string) => void;
  /** Also receives each record, as JSON. */
  readonly keep?: ((record: string) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** Context whose fields are computed for the first line, which most requests never write. */
export abstract class LateContext {
  readonly #isLate = true;

  abstract fields(): Record<string, unknown>;

  /** Any other access could trigger a trap of a Proxy. */
  static is(given: unknown): given is LateContext {
    return typeof given === "object" && given !== null && #isLate in given;
  }
}

export interface ServerLogger extends Logger {
  child(context: Record<string, unknown> | LateContext): Logger;
  /**
   * Decides again whether to sample debug lines (`POWERTOOLS_LOGGER_SAMPLE_RATE`), at the start of
   * each invocation in Lambda. Has no effect on the application's Powertools Logger.
   */
  refreshSampling(): void;
  readonly isSampling: boolean;
}

/**
 * Creates the logger of a server (specification 2.5). Writes a record with `recordText`, or with
 * `LOG_FORMAT=pretty` for people, colored on a terminal unless `NO_COLOR` is set. No call throws or
 * loses its line: values are bounded, redacted, and marked if unreadable.
 *
 * With `powertools`, that Logger prints: its level, sampling, buffering, attributes, formatter and
 * destination apply, and it reads `LOG_LEVEL` itself, in upper case only. It receives the message,
 * and context, `msg` and data as attributes. With `write` too, as in tests, keelson writes, and uses
 * only the Logger's level and persistent attributes.
 *
 * @throws TypeError or Error from Powertools for a malformed `POWERTOOLS_LOGGER_*` variable.
 */
export function createServerLogger(options: ServerLoggerOptions): ServerLogger {
  const rules = createRecordRules(createRedaction(options.redact), [
    "level",
    "msg",
    ...timeNames(options.env),
  ]);
  const printLine = createLinePrint(options, rules);
  const { powertools } = options;
  if (powertools === undefined) {
    const outside = new LogContext(rules);
    const threshold = createThreshold(
      { ...options, powertools: options.powertoolsThreshold },
      (level, msg, data) => printLine(level, { context: outside }, msg, data),
    );
    return serverLogger(above(threshold, printLine), outside, threshold);
  }
  if (options.write === undefined) {
    const printed = createPowertoolsPrint(powertools, rules.redaction, printLine);
    return serverLogger(printed.print, new LogContext(printed.rules));
  }
  const attributes = new LogContext(rules, powertools.getPersistentLogAttributes());
  const threshold = {
    get current() {
      return levelOf(powertools, 0);
    },
  };
  return serverLogger(above(threshold, printLine), attributes);
}

function serverLogger(
  print: Print,
  context: LogContext,
  { isSampling, refreshSampling }: Pick<LogThreshold, "isSampling" | "refreshSampling"> = {
    isSampling: false,
    refreshSampling: () => undefined,
  },
): ServerLogger {
  const logger: Logger = new ContextLogger(print, context);
  return { ...logger, isSampling, refreshSampling };
}

/** Logger whose methods are bound functions, so that `onClamp: log.warn` works. */
class ContextLogger implements Logger {
  readonly #print: Print;
  readonly #parent: ContextLogger | undefined;
  readonly #added: unknown;
  #context: LogContext | undefined;

  constructor(print: Print, context?: LogContext, parent?: ContextLogger, added?: unknown) {
    this.#print = print;
    this.#parent = parent;
    this.#added = added;
    this.#context = context;
  }

  readonly debug: Logger["debug"] = (msg, data) => this.#print("debug", this, msg, data);
  readonly info: Logger["info"] = (msg, data) => this.#print("info", this, msg, data);
  readonly warn: Logger["warn"] = (msg, data) => this.#print("warn", this, msg, data);
  readonly error: Logger["error"] = (msg, data) => this.#print("error", this, msg, data);
  readonly child: Logger["child"] = (added) =>
    new ContextLogger(this.#print, undefined, this, added);

  /** Uses a loop, like `LogContext`. */
  get context(): LogContext {
    if (this.#context !== undefined) return this.#context;
    const late: ContextLogger[] = [this];
    // Safe: a logger without a context has a parent.
    let known = this.#parent as ContextLogger;
    for (; known.#context === undefined; known = known.#parent as ContextLogger) late.push(known);
    let context = known.#context;
    for (const logger of late.reverse()) {
      context = context.child(logger.#added);
      logger.#context = context;
    }
    return context;
  }
}

export const contextLimits = Object.freeze({
  /** Characters of one field, so that a long field leaves room for others. */
  fieldCharacters: 1_024,
  /** Characters of all fields, including the parents'. Further fields are left out. */
  characters: 16_384,
});

/** Context of a logger and its parents, written for the first line that has it. */
export class LogContext implements RecordContext {
  readonly #rules: RecordRules;
  readonly #added: unknown;
  readonly #parent: LogContext | undefined;
  #fields: ReadonlyMap<string, string> | undefined;
  #text: string | undefined;
  /** Names of the fields if the fast path wrote them without `#fields`. */
  #plainNames: readonly string[] | undefined;
  /** Characters left for children. */
  #left = 0;

  constructor(rules: RecordRules, added?: unknown, parent?: LogContext) {
    this.#rules = rules;
    this.#added = LateContext.is(added) ? added.fields() : added;
    this.#parent = parent;
  }

  child(added: unknown): LogContext {
    return new LogContext(this.#rules, added, this);
  }

  get fields(): ReadonlyMap<string, string> {
    this.#fields ??= this.#write();
    return this.#fields;
  }

  get text(): string {
    this.#text ??=
      this.#plainText() ?? [...this.fields.values()].map((field) => `${field},`).join("");
    return this.#text;
  }

  has(name: string): boolean {
    return this.#plainNames?.includes(name) ?? this.fields.has(name);
  }

  /** Uses a loop, because recursion through a long chain of children may exceed the stack. */
  #write(): ReadonlyMap<string, string> {
    const unwritten: LogContext[] = [];
    let written: LogContext | undefined = this;
    while (written !== undefined && written.#fields === undefined) {
      unwritten.push(written);
      written = written.#parent;
    }
    const fields = new Map(written === undefined ? [] : written.#fields);
    this.#left = written === undefined ? contextLimits.characters : written.#left;
    for (const context of unwritten.reverse()) this.#left = context.#addTo(fields, this.#left);
    return fields;
  }

  /** Returns the number of characters left. */
  #addTo(fields: Map<string, string>, characters: number): number {
    const { redaction, reserved } = this.#rules;
    const { source, names } = fieldsOf(this.#added, "context");
    const nameOf = renaming("context", names, (name) => reserved.has(name));
    let left = characters;
    for (const name of names) {
      if (left <= 0) {
        fields.set("[cut]", '"[cut]":true');
        break;
      }
      const shown = nameOf(name);
      const walk = startWalk(redaction, Math.min(contextLimits.fieldCharacters, left));
      walk.within.push(source);
      const field = membersText(source, [name], walk, redaction.root, () => shown);
      if (field !== "") fields.set(shown, field);
      left -= field.length;
    }
    return left;
  }

  /** Fast path for nearly all contexts: a few short plain strings below a parent without fields. */
  #plainText(): string | undefined {
    const { redaction, plainMember } = this.#rules;
    const parent = this.#parent;
    if (parent === undefined || parent.#added !== undefined || redaction.root.length > 0)
      return undefined;
    const { source, names } = fieldsOf(this.#added, "context");
    if (names.length > plainLimits.contextFields) return undefined;
    const written: string[] = [];
    let text = "";
    try {
      for (const name of names) {
        const value = source[name];
        if (value === undefined) continue;
        const member = plainMember(name);
        if (member === undefined || typeof value !== "string") return undefined;
        if (value !== member.value) {
          if (value.length > plainLimits.characters || !harmless.test(value)) return undefined;
          member.value = value;
          member.text = `${member.json}"${value}",`;
        }
        text += member.text;
        written.push(name);
      }
    } catch {
      return undefined; // a getter threw
    }
    this.#plainNames = written;
    return text;
  }
}

function above(threshold: Pick<LogThreshold, "current">, print: Print): Print {
  return (level, ...given) => {
    if (levelNumbers[level] >= threshold.current) print(level, ...given);
  };
}

function createLinePrint(
  { env, write, keep, clock }: ServerLoggerOptions,
  rules: RecordRules,
): Print {
  const names = timeNames(env);
  const timeFields = createTimeFields(names, clock);
  const take = write ?? writeToStandardOutput;
  const isPretty = env["LOG_FORMAT"]?.trim().toLowerCase() === "pretty";
  const isColoured = isPretty && write === undefined && process.stdout.isTTY && !env["NO_COLOR"];

  return (level, { context }, msg, data) => {
    try {
      const record = recordOf(level, context, msg, data);
      take(isPretty ? prettyLine(record, isColoured) : record);
      keep?.(record);
    } catch {
      // Only a given `write` throws, and there is no other place to report it.
    }
  };

  function recordOf(level: LogLevel, context: RecordContext, msg: unknown, data: unknown): string {
    try {
      return recordText(level, context, msg, data, timeFields(), rules);
    } catch {
      // The only known cause is a clock that throws.
      const text = quoted(typeof msg === "string" ? cut(msg, recordLimits.msgLength) : typeof msg);
      return `{"level":"${level}","msg":${text},${createTimeFields(names)()}}`;
    }
  }
}
