import { Logger as Powertools } from "@aws-lambda-powertools/logger";
import type { LogItemMessage } from "@aws-lambda-powertools/logger/types";
import {
  type LevelName,
  type LogThreshold,
  levelOf,
  type Notify,
  powertoolsNumbers,
} from "./levels.ts";

/** Settings determined before Powertools is involved. */
export interface Decided {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly initial: LevelName;
  /** The number of the level below which no line is printed, sampled or not. */
  readonly least: number;
  /** Whether the platform sets the level, which disables sampling. */
  readonly isPlatforms: boolean;
}

const sampleRateName = "POWERTOOLS_LOGGER_SAMPLE_RATE";

/**
 * Creates the threshold on a Powertools Logger.
 *
 * @throws TypeError or Error from Powertools if a `POWERTOOLS_LOGGER_*` variable of the process is
 * malformed.
 */
export function createPowertoolsThreshold(
  { env, initial, least, isPlatforms }: Decided,
  notify: Notify,
): LogThreshold {
  /** Uses only the Logger's decisions. Powertools' own messages become lines of keelson's. */
  class Levels extends Powertools {
    protected override processLogItem(level: number, input: LogItemMessage): void {
      if (level >= levelOf(this, powertoolsNumbers[initial]))
        notify(level >= powertoolsNumbers.WARN ? "warn" : "debug", String(input));
    }
  }
  const levels = new Levels({ logLevel: initial, ...sampleRate(env, isPlatforms) });
  const read = () => Math.max(levelOf(levels, powertoolsNumbers[initial]), least);
  // Each read of the level reads the process's environment. Invocations have different levels only
  // if one process runs several Lambda invocations concurrently.
  const isPerInvocation = Boolean(env["AWS_LAMBDA_MAX_CONCURRENCY"]);
  let known = read();
  // Powertools reads the variable from the process unless it receives the value.
  const isSampling = [env, process.env].some(
    (variables) => variables[sampleRateName] !== undefined,
  );
  return {
    get current() {
      return isPerInvocation ? read() : known;
    },
    isSampling,
    refreshSampling: () => {
      if (!isSampling) return;
      try {
        levels.refreshSampleRateCalculation();
      } catch {
        // As in `levelOf`: outside Lambda there is no invocation to sample.
      }
      known = read();
    },
  };
}

/** Reads the sample rate from the given environment instead of the process's. */
function sampleRate(env: Decided["env"], isPlatforms: boolean): { sampleRateValue?: number } {
  if (isPlatforms) return { sampleRateValue: 0 };
  const text = env[sampleRateName]?.trim();
  const rate = text ? Number(text) : Number.NaN;
  return rate >= 0 && rate <= 1 ? { sampleRateValue: rate } : {};
}
