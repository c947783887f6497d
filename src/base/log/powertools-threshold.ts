import { Logger as Powertools } from "@aws-lambda-powertools/logger";
import type { LogItemMessage } from "@aws-lambda-powertools/logger/types";
import type { Variables } from "../process/environment.ts";
import {
  type LevelName,
  type LogThreshold,
  levelOf,
  type Notify,
  powertoolsNumbers,
} from "./logger.ts";

interface Decided {
  readonly env: Variables;
  readonly initial: LevelName;
  /** Level below which no line is printed, even if debug lines are sampled. */
  readonly least: number;
  readonly isPlatforms: boolean;
}

const sampleRateName = "POWERTOOLS_LOGGER_SAMPLE_RATE";

export function createPowertoolsThreshold(
  { env, initial, least, isPlatforms }: Decided,
  notify: Notify,
): LogThreshold {
  /** Decides levels and prints nothing. Powertools' own messages become keelson's lines. */
  class Levels extends Powertools {
    protected override processLogItem(level: number, input: LogItemMessage): void {
      if (level >= levelOf(this, powertoolsNumbers[initial]))
        notify(level >= powertoolsNumbers.WARN ? "warn" : "debug", String(input));
    }
  }
  const levels = new Levels({ logLevel: initial, ...sampleRate(env, isPlatforms) });
  const read = () => Math.max(levelOf(levels, powertoolsNumbers[initial]), least);
  // `read` is slow, because it reads the environment. Only concurrent invocations have own levels.
  const isPerInvocation = Boolean(env["AWS_LAMBDA_MAX_CONCURRENCY"]);
  let known = read();
  // Powertools reads the process's variable if keelson's variables lack it.
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
        // Outside Lambda there is no invocation to sample.
      }
      known = read();
    },
  };
}

function sampleRate(env: Variables, isPlatforms: boolean): { sampleRateValue?: number } {
  if (isPlatforms) return { sampleRateValue: 0 };
  const text = env[sampleRateName]?.trim();
  const rate = text ? Number(text) : Number.NaN;
  return rate >= 0 && rate <= 1 ? { sampleRateValue: rate } : {};
}
