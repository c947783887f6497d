import type { LogLevel } from "../../base/log/logger.ts";

/** Options of `createClientLogger`. */
export interface ClientLoggerOptions {
  /** URL of the server's `/log` route, including its `basePath`. */
  readonly url: string;
  /** Token of the caller, or a function that returns it. Without a token, records stay queued. */
  readonly token: string | (() => string | undefined | Promise<string | undefined>);
  /** Lowest level to send. Default: `info`, in development `debug`. */
  readonly level?: LogLevel;
  /** `development` writes to the console instead. Default `production`. */
  readonly environment?: "development" | "production";
  /** Fields of every record, such as a release. Default: none. */
  readonly context?: Record<string, unknown>;
  /** Logs uncaught errors and unhandled rejections as `error`. Default `false`. */
  readonly captureErrors?: boolean;
  /** Time that a record waits to be sent with others, in milliseconds. Default 2,000. */
  readonly flushAfterMs?: number;
  /** Maximum number of queued records. The oldest are dropped. Default 500. */
  readonly maxQueued?: number;
}
