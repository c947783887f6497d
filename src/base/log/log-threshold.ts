import type { Environment, Variables } from "../process/environment.ts";
import type { PowertoolsThreshold } from "./load-powertools.ts";
import {
  type LevelName,
  type LogLevel,
  type LogThreshold,
  type Notify,
  powertoolsNumbers,
} from "./logger.ts";

export interface ThresholdOptions {
  readonly environment: Environment;
  readonly level?: LogLevel;
  readonly env: Variables;
  readonly powertools?: PowertoolsThreshold | undefined;
}

/**
 * Determines the lowest printed level; with Powertools, by a Powertools Logger that never prints.
 *
 * | `LOG_LEVEL` | `AWS_LAMBDA_LOG_LEVEL` | level |
 * |---|---|---|
 * | set | set | the less verbose of both, since the platform drops lines below its own level |
 * | set | | `LOG_LEVEL`, or `debug` if this process or invocation is sampled |
 * | | set | `AWS_LAMBDA_LOG_LEVEL`, never sampled, as in Powertools |
 * | | | `options.level`, default `debug` in development, otherwise `info`; or `debug` if sampled |
 *
 * `POWERTOOLS_LOG_LEVEL` applies without `LOG_LEVEL`. The case of names does not matter.
 *
 * @throws TypeError or Error from Powertools for a malformed `POWERTOOLS_LOGGER_*` variable.
 */
export function createThreshold(options: ThresholdOptions, notify: Notify): LogThreshold {
  const { env } = options;
  const variable = levelFromVariables(env, notify);
  const platform = levelNamed(platformName(env));
  const initial =
    platform ??
    variable ??
    levelNamed(options.level) ??
    (options.environment === "development" ? "DEBUG" : "INFO");
  const least = platform === undefined || variable === undefined ? 0 : powertoolsNumbers[variable];
  if (platform !== undefined && least > 0 && least < powertoolsNumbers[platform]) {
    notify("warn", "log.level_below_platform", {
      LOG_LEVEL: variable,
      AWS_LAMBDA_LOG_LEVEL: platform,
      used: platform,
    });
  }

  if (options.powertools !== undefined) {
    return options.powertools.createPowertoolsThreshold(
      { env, initial, least, isPlatforms: platform !== undefined },
      notify,
    );
  }
  const current = Math.max(powertoolsNumbers[initial], least);
  return { current, refreshSampling: () => undefined, isSampling: false };
}

function levelFromVariables(env: Variables, notify: Notify): LevelName | undefined {
  for (const name of ["LOG_LEVEL", "POWERTOOLS_LOG_LEVEL"] as const) {
    const value = env[name]?.trim();
    if (!value) continue;
    const level = levelNamed(value);
    if (level !== undefined) return level;
    notify("warn", "log.level_unknown", {
      variable: name,
      value,
      known: Object.keys(powertoolsNumbers).join(", ").toLowerCase(),
    });
  }
  return undefined;
}

function levelNamed(name: string | undefined): LevelName | undefined {
  const level = String(name).toUpperCase();
  return Object.hasOwn(powertoolsNumbers, level) ? (level as LevelName) : undefined; // safe: a key
}

/** As in Powertools, only upper case is valid. */
function platformName(env: Variables): string | undefined {
  const name = env["AWS_LAMBDA_LOG_LEVEL"]?.trim();
  if (name === "FATAL") return "CRITICAL";
  return name === name?.toUpperCase() ? name : undefined;
}
