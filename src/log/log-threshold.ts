import { LogLevelThreshold, Logger as Powertools } from "@aws-lambda-powertools/logger";
import type { LogItemMessage } from "@aws-lambda-powertools/logger/types";
import type { LogLevel } from "./logger.ts";

/** From what the level is chosen. */
export interface ThresholdOptions {
  readonly environment: "development" | "test" | "production";
  readonly level?: LogLevel;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The level from which lines are printed, as Powertools decides it. */
export interface LogThreshold {
  /** In Powertools' numbers: debug 8, info 12, warn 16, error 20. */
  current(): number;
  /** Has Powertools decide anew whether this invocation is sampled. As in Powertools the first call does nothing. */
  refreshSampling(): void;
}

/** Prints a line of the logger's own. */
export type Notify = (level: LogLevel, msg: string, data?: Record<string, unknown>) => void;

/** The levels as Powertools numbers them. */
export const levelNumbers: Readonly<Record<LogLevel, number>> = Object.freeze({
  debug: LogLevelThreshold.DEBUG,
  info: LogLevelThreshold.INFO,
  warn: LogLevelThreshold.WARN,
  error: LogLevelThreshold.ERROR,
});

const sampleRateName = "POWERTOOLS_LOGGER_SAMPLE_RATE";

type LevelName = keyof typeof LogLevelThreshold;

/**
 * Creates the threshold on a Powertools Logger of our own, which never prints, and is made only where it has a say.
 *
 * | `LOG_LEVEL` | `AWS_LAMBDA_LOG_LEVEL` | level |
 * |---|---|---|
 * | set | set | the less verbose of both, since the platform drops what is below its own |
 * | set | | `LOG_LEVEL`, or `debug` where this process or invocation is sampled |
 * | | set | the platform's; no sampling, as in Powertools |
 * | | | `options.level`, default `debug` in development, otherwise `info`; or sampled |
 *
 * `POWERTOOLS_LOG_LEVEL` counts where `LOG_LEVEL` is not set; names are those of Powertools, in any case.
 *
 * @throws TypeError or Error from Powertools, where a `POWERTOOLS_LOGGER_*` variable of the process is malformed.
 */
export function createThreshold(options: ThresholdOptions, notify: Notify): LogThreshold {
  const { env } = options;
  const variable = levelFromVariables(env, notify);
  const platform = levelNamed(platformName(env));
  const initial = platform ?? variable ?? levelNamed(options.level) ?? (options.environment === "development" ? "DEBUG" : "INFO");
  const least = platform === undefined || variable === undefined ? 0 : LogLevelThreshold[variable];
  if (platform !== undefined && least > 0 && least < LogLevelThreshold[platform]) {
    notify("warn", "log.level_below_platform", { LOG_LEVEL: variable, AWS_LAMBDA_LOG_LEVEL: platform, used: platform });
  }

  if (!isLeftToPowertools(env)) {
    const decided = Math.max(LogLevelThreshold[initial], least);
    return { current: () => decided, refreshSampling: () => undefined };
  }

  /** Takes only the decisions: what Powertools itself has to say becomes a line of ours. */
  class Levels extends Powertools {
    protected override processLogItem(level: number, input: LogItemMessage): void {
      if (level >= levelOf(this, LogLevelThreshold[initial]))
        notify(level >= LogLevelThreshold.WARN ? "warn" : "debug", String(input));
    }
  }
  const levels = new Levels({ logLevel: initial, ...sampleRate(env, platform) });
  const read = () => Math.max(levelOf(levels, LogLevelThreshold[initial]), least);
  // Reading the level costs a look into the process's environment each time; only where one process runs several
  // Lambda invocations at once does each have a level of its own.
  const isPerInvocation = Boolean(env["AWS_LAMBDA_MAX_CONCURRENCY"]);
  let known = read();
  // Powertools looks for the variable in the process itself where it was not given one.
  const isSampling = [env, process.env].some((variables) => variables[sampleRateName] !== undefined);
  return {
    current: () => (isPerInvocation ? read() : known),
    refreshSampling: () => {
      if (!isSampling) return;
      try {
        levels.refreshSampleRateCalculation();
      } catch {
        // As in levelOf: outside Lambda there is no invocation to sample.
      }
      known = read();
    },
  };
}

/**
 * Whether Powertools has anything to decide: where none of the variables is there that it looks at itself, the level is the
 * one that it would be given. Making a Logger opens both standard streams, which takes 2 ms of a cold start (`lambda-cold`).
 */
function isLeftToPowertools(env: ThresholdOptions["env"]): boolean {
  const platformLevel = "AWS_LAMBDA_LOG_LEVEL";
  if (env["AWS_LAMBDA_MAX_CONCURRENCY"] || process.env[platformLevel] !== env[platformLevel]) return true;
  return [env, process.env].some((variables) => Object.keys(variables).some((name) => name.startsWith("POWERTOOLS_")));
}

/**
 * Reads the level of a Powertools Logger; `otherwise` where that throws, as it does with `AWS_LAMBDA_MAX_CONCURRENCY`
 * set outside Lambda.
 */
export function levelOf(powertools: { readonly level: number }, otherwise: number): number {
  try {
    return powertools.level;
  } catch {
    return otherwise;
  }
}

function levelFromVariables(env: ThresholdOptions["env"], notify: Notify): LevelName | undefined {
  for (const name of ["LOG_LEVEL", "POWERTOOLS_LOG_LEVEL"]) {
    const value = env[name]?.trim();
    if (!value) continue;
    const level = levelNamed(value);
    if (level !== undefined) return level;
    notify("warn", "log.level_unknown", {
      variable: name,
      value,
      known: Object.keys(LogLevelThreshold).join(", ").toLowerCase(),
    });
  }
  return undefined;
}

function levelNamed(name: string | undefined): LevelName | undefined {
  const level = name?.toUpperCase();
  // Safe: the name is a key of the table of names.
  return level !== undefined && Object.hasOwn(LogLevelThreshold, level) ? (level as LevelName) : undefined;
}

/** The platform's FATAL is Powertools' CRITICAL. Other than ours, names count only in upper case, as Powertools has it. */
function platformName(env: ThresholdOptions["env"]): string | undefined {
  const name = env["AWS_LAMBDA_LOG_LEVEL"]?.trim();
  if (name === "FATAL") return "CRITICAL";
  return name === name?.toUpperCase() ? name : undefined;
}

/** Powertools reads the variable from the process itself; here it is read from the environment that was given. */
function sampleRate(env: ThresholdOptions["env"], platform: LevelName | undefined): { sampleRateValue?: number } {
  if (platform !== undefined) return { sampleRateValue: 0 };
  const text = env[sampleRateName]?.trim();
  const rate = text ? Number(text) : Number.NaN;
  return rate >= 0 && rate <= 1 ? { sampleRateValue: rate } : {};
}
