import { writeSync } from "node:fs";
import { systemCode } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import type { Environment, Variables } from "../process/environment.ts";
import type { PowertoolsThreshold } from "./load-powertools.ts";
import { createRecordRules, LogContext, type RecordRules } from "./log-context.ts";
import { createTimeFields, type Print, recordLimits, recordText, timeNames } from "./log-record.ts";
import { createThreshold } from "./log-threshold.ts";
import { type Logger, type LogLevel, type LogThreshold, levelNumbers, levelOf } from "./logger.ts";
import { createPowertoolsPrint, type PowertoolsLogger } from "./powertools-logger.ts";
import { prettyLine } from "./pretty-line.ts";
import { createRedaction, cut, quoted } from "./redaction.ts";

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
    const { print, context } = createPowertoolsPrint(powertools, rules.redaction, printLine);
    return serverLogger(print, context);
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
  const logger: Logger = new ContextLogger(print, undefined, undefined, context);
  return { ...logger, isSampling, refreshSampling };
}

/** Logger whose methods are bound functions, so that `onClamp: log.warn` works. */
class ContextLogger implements Logger {
  readonly #print: Print;
  readonly #parent: ContextLogger | undefined;
  readonly #added: unknown;
  #context: LogContext | undefined;

  constructor(
    print: Print,
    parent: ContextLogger | undefined,
    added: unknown,
    context: LogContext | undefined,
  ) {
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
    new ContextLogger(this.#print, this, added, undefined);

  get context(): LogContext {
    // Safe: a logger without a context has a parent.
    this.#context ??= (this.#parent as ContextLogger).context.child(
      LateContext.is(this.#added) ? this.#added.fields() : this.#added,
    );
    return this.#context;
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

  function recordOf(level: LogLevel, context: LogContext, msg: unknown, data: unknown): string {
    try {
      return recordText(level, context, msg, data, timeFields(), rules);
    } catch {
      // The only known cause is a clock that throws.
      const text = quoted(typeof msg === "string" ? cut(msg, recordLimits.msgLength) : typeof msg);
      return `{"level":"${level}","msg":${text},${createTimeFields(names)()}}`;
    }
  }
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
