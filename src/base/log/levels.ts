import type { LogLevel } from "./logger.ts";

/**
 * Names and numbers of all Powertools levels. Copied, because importing the Powertools Logger adds
 * a millisecond to a cold start.
 */
export const powertoolsNumbers = Object.freeze({
  TRACE: 6,
  DEBUG: 8,
  INFO: 12,
  WARN: 16,
  ERROR: 20,
  CRITICAL: 24,
  SILENT: 28,
});

/** Maps keelson's levels to Powertools' numbers. */
export const levelNumbers: Readonly<Record<LogLevel, number>> = Object.freeze({
  debug: powertoolsNumbers.DEBUG,
  info: powertoolsNumbers.INFO,
  warn: powertoolsNumbers.WARN,
  error: powertoolsNumbers.ERROR,
});

export type LevelName = keyof typeof powertoolsNumbers;

/**
 * Reads the level of a Powertools Logger. Returns `otherwise` if the read throws, which happens
 * outside Lambda if `AWS_LAMBDA_MAX_CONCURRENCY` is set.
 */
export function levelOf(powertools: { readonly level: number }, otherwise: number): number {
  try {
    return powertools.level;
  } catch {
    return otherwise;
  }
}

/** The lowest level that is printed, as determined by Powertools. */
export interface LogThreshold {
  /** Powertools' number of the level: debug 8, info 12, warn 16, error 20. */
  readonly current: number;
  /**
   * Makes Powertools decide again whether to sample this invocation. As in Powertools, the first
   * call does nothing.
   */
  refreshSampling(): void;
  /** Whether `refreshSampling` has any effect. */
  readonly isSampling: boolean;
}

/** Prints a line on behalf of the logger itself. */
export type Notify = (level: LogLevel, msg: string, data?: Record<string, unknown>) => void;
