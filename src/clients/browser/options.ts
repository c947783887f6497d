import type { LogLevel } from "../../base/log/logger.ts";

/** Options of `createClientLogger`. */
export interface ClientLoggerOptions {
  /** URL of the server's `/log` route, including its `basePath`. */
  readonly url: string;
  /** The caller's token, or a function that returns it. Without a token, records are not sent. */
  readonly token: string | (() => string | undefined | Promise<string | undefined>);
  /** The lowest level to send. Default: `info`, in development `debug`. */
  readonly level?: LogLevel;
  /** `development` writes records to the console and does not send them. Default `production`. */
  readonly environment?: "development" | "production";
  /** Fields of every record, such as the page's request ID or a release. Default: no fields. */
  readonly context?: Record<string, unknown>;
  /** Logs uncaught errors and unhandled rejections as `error`. Default `false`. */
  readonly captureErrors?: boolean;
  /** Time that a record waits for others before it is sent, in milliseconds. Default 2,000. */
  readonly flushAfterMs?: number;
  /** Maximum number of queued records. Drops and counts the oldest beyond it. Default 500. */
  readonly maxQueued?: number;
}
