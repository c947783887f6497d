import type { LogLevel } from "./logger.ts";

/** All levels, as Powertools names and numbers them. Not read from Powertools: importing its Logger takes a millisecond of a cold start. */
export const powertoolsNumbers = Object.freeze({
  TRACE: 6,
  DEBUG: 8,
  INFO: 12,
  WARN: 16,
  ERROR: 20,
  CRITICAL: 24,
  SILENT: 28,
});

/** Our levels, in Powertools' numbers. */
export const levelNumbers: Readonly<Record<LogLevel, number>> = Object.freeze({
  debug: powertoolsNumbers.DEBUG,
  info: powertoolsNumbers.INFO,
  warn: powertoolsNumbers.WARN,
  error: powertoolsNumbers.ERROR,
});

/** A level, as Powertools names it. */
export type LevelName = keyof typeof powertoolsNumbers;

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

/** The level from which lines are printed, as Powertools decides it. */
export interface LogThreshold {
  /** In Powertools' numbers: debug 8, info 12, warn 16, error 20. */
  readonly current: number;
  /** Has Powertools decide anew whether this invocation is sampled. As in Powertools the first call does nothing. */
  refreshSampling(): void;
  /** Whether that decides anything. */
  readonly isSampling: boolean;
}

/** Prints a line of the logger's own. */
export type Notify = (level: LogLevel, msg: string, data?: Record<string, unknown>) => void;
