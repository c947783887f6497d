import type { LogLevel } from "../../base/log/logger.ts";

/** Options of `createClientLogger`. */
export interface ClientLoggerOptions {
  /** The server's `/log`, under its `basePath`. */
  readonly url: string;
  /** The caller's token, or a function that returns a fresh one. Without a token nothing is sent. */
  readonly token: string | (() => string | undefined | Promise<string | undefined>);
  /** Records below this level are dropped. Default `info`, in development `debug`. */
  readonly level?: LogLevel;
  /** `development` writes records to the console and sends nothing. Default `production`. */
  readonly environment?: "development" | "production";
  /** Fields of every record, such as the page's request ID or a release. Default none. */
  readonly context?: Record<string, unknown>;
  /** Logs uncaught errors and unhandled rejections as `error`. Default `false`. */
  readonly captureErrors?: boolean;
  /** How long a record waits for others, in milliseconds. Default 2,000. */
  readonly flushAfterMs?: number;
  /** How many records may wait; beyond that the oldest are dropped and counted. Default 500. */
  readonly maxQueued?: number;
}
