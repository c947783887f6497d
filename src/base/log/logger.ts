/** A log level (specification 2.5). */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Logger of specification 2.5, on server and client. A record is one line of JSON: `level`, the
 * context, `msg`, the fields of `data`, `time`.
 */
export interface Logger {
  info(msg: string, data?: Record<string, unknown>): void;
  warn(msg: string, data?: Record<string, unknown>): void;
  error(msg: string, data?: Record<string, unknown>): void;
  debug(msg: string, data?: Record<string, unknown>): void;
  /** Returns a logger whose records have `context` as well. */
  child(context: Record<string, unknown>): Logger;
}

/** Copied, because importing Powertools' Logger adds a millisecond to a cold start. */
export const powertoolsNumbers = Object.freeze({
  TRACE: 6,
  DEBUG: 8,
  INFO: 12,
  WARN: 16,
  ERROR: 20,
  CRITICAL: 24,
  SILENT: 28,
});

export const levelNumbers: Readonly<Record<LogLevel, number>> = Object.freeze({
  debug: powertoolsNumbers.DEBUG,
  info: powertoolsNumbers.INFO,
  warn: powertoolsNumbers.WARN,
  error: powertoolsNumbers.ERROR,
});

export type LevelName = keyof typeof powertoolsNumbers;

/** Returns `otherwise` if the getter throws: outside Lambda with `AWS_LAMBDA_MAX_CONCURRENCY`. */
export function levelOf(powertools: { readonly level: number }, otherwise: number): number {
  try {
    return powertools.level;
  } catch {
    return otherwise;
  }
}

export interface LogThreshold {
  /** Number of the lowest printed level: debug 8, info 12, warn 16, error 20. */
  readonly current: number;
  /** Decides again whether to sample. As in Powertools, the first call does nothing. */
  refreshSampling(): void;
  readonly isSampling: boolean;
}

export type Notify = (level: LogLevel, msg: string, data?: Record<string, unknown>) => void;
