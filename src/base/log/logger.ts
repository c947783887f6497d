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
