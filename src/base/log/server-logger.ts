import { type Clock, systemClock } from "../process/clock.ts";
import { type LogThreshold, levelNumbers, levelOf } from "./levels.ts";
import type { PowertoolsThreshold } from "./load-powertools.ts";
import { createRecordRules, LogContext, type RecordRules } from "./log-context.ts";
import { createTimeFields, type Print, recordLimits, recordText, timeNames } from "./log-record.ts";
import { createThreshold } from "./log-threshold.ts";
import type { Logger, LogLevel } from "./logger.ts";
import { createPowertoolsPrint, type PowertoolsLogger } from "./powertools-logger.ts";
import { prettyLine } from "./pretty-line.ts";
import { cut, quoted } from "./quoted-text.ts";
import { createRedaction } from "./redaction.ts";
import { writeToStandardOutput } from "./standard-output.ts";

export type { PowertoolsLogger } from "./powertools-logger.ts";

/** What a server's logger is made of. */
export interface ServerLoggerOptions {
  /** The default level is `debug` in development, otherwise `info`. */
  readonly environment: "development" | "test" | "production";
  /** The application's level. `LOG_LEVEL` and `AWS_LAMBDA_LOG_LEVEL` win. */
  readonly level?: LogLevel;
  /** Dotted paths of fields to redact, `*` for any one name, beside the names that are redacted always. */
  readonly redact?: readonly string[];
  /** A Powertools Logger of one's own; see `createServerLogger`. */
  readonly powertools?: PowertoolsLogger;
  /** Decides on level and sampling, where Powertools has a say: what `loadPowertools` has loaded. */
  readonly powertoolsThreshold?: PowertoolsThreshold | undefined;
  /** The environment: `LOG_LEVEL`, `LOG_FORMAT`, `NO_COLOR`, `AWS_LAMBDA_LOG_LEVEL`, `AWS_LAMBDA_LOG_FORMAT`, `POWERTOOLS_*`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes each line, without a line end. Default: stdout, written before the call returns. */
  readonly write?: (line: string) => void;
  /** Takes each record as JSON as well, however lines are written. */
  readonly keep?: ((record: string) => void) | undefined;
  /** Where `time` comes from. Default: the machine's clock. */
  readonly clock?: Clock;
}

/** Context that is asked for with the first line that carries it: most requests write none. */
export abstract class LateContext {
  readonly #isLate = true;

  abstract fields(): Record<string, unknown>;

  /** By a private name, since anything else that is asked of a given object may be a trap of it. */
  static is(given: unknown): given is LateContext {
    return typeof given === "object" && given !== null && #isLate in given;
  }
}

/** The logger of a server. */
export interface ServerLogger extends Logger {
  child(context: Record<string, unknown> | LateContext): Logger;
  /**
   * Decides anew whether debug lines are sampled (`POWERTOOLS_LOGGER_SAMPLE_RATE`): for a Lambda host to call
   * as an invocation begins. As in Powertools the first call does nothing. An own Powertools Logger is left to its owner.
   */
  refreshSampling(): void;
  /** Whether that decides anything. */
  readonly isSampling: boolean;
}

/**
 * Creates the logger of a server (specification 2.5): a record is one line of JSON with `level`, the
 * context, `msg`, the data and `time`; with `LOG_FORMAT=pretty` it is a line for people, coloured on a terminal
 * unless `NO_COLOR` is set. In Lambda's JSON log format the time is there as `timestamp` as well. Levels and sampling are Powertools'; the line is ours.
 *
 * No call of the logger throws, and none loses its line: values are bounded (`textLimits`, `recordLimits`), what cannot
 * be read is marked. The values of names such as `authorization`, `password`, `token`, `apiKey` and `clientSecret`
 * are redacted at any depth, in any case.
 *
 * With `powertools` that Logger prints: its level, sampling, buffering, attributes, formatter and destination apply.
 * It gets the message, and as attributes context, `msg` and data, redacted and bounded as ever; names that it reserves
 * become `context_<name>` and `data_<name>`. `LOG_LEVEL` is then for it to read, which it does in upper case only. Where `write` is
 * given as well, as in tests, records are ours and go there: of the Powertools Logger only its level and its persistent attributes count.
 *
 * @throws TypeError or Error from Powertools, where a `POWERTOOLS_LOGGER_*` variable of the process is malformed.
 * @example
 * const log = createServerLogger({ environment: "production", env: process.env });
 * log.child({ requestId: "r1" }).info("file.created", { id: "f1" });
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
    const { isSampling, refreshSampling } = threshold;
    return { ...loggerOf(above(threshold, printLine), outside), isSampling, refreshSampling };
  }
  if (options.write === undefined) {
    const { print, context } = createPowertoolsPrint(powertools, rules.redaction, printLine);
    return serverLogger(print, context);
  }
  const attributes = new LogContext(rules, powertools.getPersistentLogAttributes());
  return serverLogger(
    above(
      {
        get current() {
          return levelOf(powertools, 0);
        },
      },
      printLine,
    ),
    attributes,
  );
}

function serverLogger(print: Print, context: LogContext): ServerLogger {
  return { ...loggerOf(print, context), isSampling: false, refreshSampling: () => undefined };
}

function loggerOf(print: Print, context: LogContext): Logger {
  return new ContextLogger(print, undefined, undefined, context);
}

/** Functions, not methods: `onClamp: log.warn` works. Its context is made for the first line: most requests write none. */
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
    // Safe: one without a context of its own has a parent.
    this.#context ??= (this.#parent as ContextLogger).context.child(
      LateContext.is(this.#added) ? this.#added.fields() : this.#added,
    );
    return this.#context;
  }
}

function above(threshold: Pick<LogThreshold, "current">, print: Print): Print {
  return (level, logger, msg, data) => {
    if (levelNumbers[level] >= threshold.current) print(level, logger, msg, data);
  };
}

/** Writes lines whatever their level. */
function createLinePrint(
  { env, write, keep, clock = systemClock }: ServerLoggerOptions,
  rules: RecordRules,
): Print {
  const names = timeNames(env);
  const timeFields = createTimeFields(clock, names);
  const take = write ?? writeToStandardOutput;
  const isPretty = env["LOG_FORMAT"]?.trim().toLowerCase() === "pretty";
  const isColoured = isPretty && write === undefined && process.stdout.isTTY && !env["NO_COLOR"];

  return (level, { context }, msg, data) => {
    try {
      const record = recordOf(level, context, msg, data);
      take(isPretty ? prettyLine(record, isColoured) : record);
      keep?.(record);
    } catch {
      // Only a given `write` throws, and there is nowhere else to say so.
    }
  };

  function recordOf(level: LogLevel, context: LogContext, msg: unknown, data: unknown): string {
    try {
      return recordText(level, context, msg, data, timeFields(), rules);
    } catch {
      // Nothing known gets here but a clock that fails: the line matters more than its form.
      const text = quoted(typeof msg === "string" ? cut(msg, recordLimits.msgLength) : typeof msg);
      return `{"level":"${level}","msg":${text},${createTimeFields(systemClock, names)()}}`;
    }
  }
}
