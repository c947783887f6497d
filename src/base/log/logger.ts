/** A log level (specification 2.5). */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * The logger of specification 2.5, identical on server and client. A record is one line of JSON:
 * `level`, the context, `msg`, the fields of `data`, and `time`.
 */
export interface Logger {
  info(msg: string, data?: Record<string, unknown>): void;
  warn(msg: string, data?: Record<string, unknown>): void;
  error(msg: string, data?: Record<string, unknown>): void;
  debug(msg: string, data?: Record<string, unknown>): void;
  /** Returns a logger that adds `context` to its records. */
  child(context: Record<string, unknown>): Logger;
}
