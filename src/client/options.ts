import type { LogLevel } from "../log/logger.ts";

/** How `createClientLogger` logs. */
export interface ClientLoggerOptions {
  /** Where records go: the server's `/log`, under its `basePath`. */
  readonly url: string;
  /** The caller's token, or what gives one that is fresh; without one nothing is sent. */
  readonly token: string | (() => string | undefined | Promise<string | undefined>);
  /** Records below it are dropped. Default `info`, in development `debug`. */
  readonly level?: LogLevel;
  /** In development records go to the console, and nothing is sent. Default `production`. */
  readonly environment?: "development" | "production";
  /** Fields of every record: the page's own request ID, a release. Default none. */
  readonly context?: Record<string, unknown>;
  /** Logs uncaught errors and unhandled rejections, as `error`. Default `false`. */
  readonly captureErrors?: boolean;
  /** How long a record waits for others, in milliseconds. Default 2,000. */
  readonly flushAfterMs?: number;
  /** How many records wait at most; then the oldest are dropped, and counted. Default 500. */
  readonly maxQueued?: number;
}
