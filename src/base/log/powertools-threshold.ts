import { Logger as Powertools } from "@aws-lambda-powertools/logger";
import type { LogItemMessage } from "@aws-lambda-powertools/logger/types";
import {
  type LevelName,
  type LogThreshold,
  levelOf,
  type Notify,
  powertoolsNumbers,
} from "./levels.ts";

/** What is decided before Powertools is asked. */
export interface Decided {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly initial: LevelName;
  /** The number below which no line is printed, sampled or not. */
  readonly least: number;
  /** The level is the platform's, so that nothing is sampled. */
  readonly isPlatforms: boolean;
}

const sampleRateName = "POWERTOOLS_LOGGER_SAMPLE_RATE";

/**
 * Creates the threshold on a Powertools Logger.
 *
 * @throws TypeError or Error from Powertools, where a `POWERTOOLS_LOGGER_*` variable of the process is malformed.
 */
export function createPowertoolsThreshold(
  { env, initial, least, isPlatforms }: Decided,
  notify: Notify,
): LogThreshold {
  /** Takes only the decisions: what Powertools itself has to say becomes a line of ours. */
  class Levels extends Powertools {
    protected override processLogItem(level: number, input: LogItemMessage): void {
      if (level >= levelOf(this, powertoolsNumbers[initial]))
        notify(level >= powertoolsNumbers.WARN ? "warn" : "debug", String(input));
    }
  }
  const levels = new Levels({ logLevel: initial, ...sampleRate(env, isPlatforms) });
  const read = () => Math.max(levelOf(levels, powertoolsNumbers[initial]), least);
  // Reading the level costs a look into the process's environment each time; only where one process runs several
  // Lambda invocations at once does each have a level of its own.
  const isPerInvocation = Boolean(env["AWS_LAMBDA_MAX_CONCURRENCY"]);
  let known = read();
  // Powertools looks for the variable in the process itself where it was not given one.
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
        // As in levelOf: outside Lambda there is no invocation to sample.
      }
      known = read();
    },
  };
}

/** Powertools reads the variable from the process itself; here it is read from the environment that was given. */
function sampleRate(env: Decided["env"], isPlatforms: boolean): { sampleRateValue?: number } {
  if (isPlatforms) return { sampleRateValue: 0 };
  const text = env[sampleRateName]?.trim();
  const rate = text ? Number(text) : Number.NaN;
  return rate >= 0 && rate <= 1 ? { sampleRateValue: rate } : {};
}
