import { flag, isRecord, kind, type OptionCheck, oneOf } from "../errors/option-table.ts";
import type { LogLevel } from "./logger.ts";
import type { PowertoolsLogger } from "./powertools-logger.ts";

/**
 * Selects the requests, events, jobs, deliveries, schedules and runs that log a line at their end.
 *
 * | value | lines |
 * |---|---|
 * | `true` | all |
 * | `false` | none |
 * | `"failed"` | failures: for requests, a status from 400 up or an incomplete response |
 * | `{ slowerThanMs }` | failures, and everything that takes longer than these milliseconds |
 */
export type RequestLines = boolean | "failed" | { readonly slowerThanMs: number };

/** Log options of a server (`log` of `buildServer`). */
export interface LogOptions {
  /** Lowest printed level if `LOG_LEVEL` is not set. Default: `debug` in development, otherwise `info`. */
  readonly level?: LogLevel;
  /** Dotted paths to redact, in addition to the default names. `*` matches any one name. Default: none. */
  readonly redact?: readonly string[];
  /** Your Powertools Logger, whose level, sampling, buffering and formatter apply. Default: none. */
  readonly powertools?: PowertoolsLogger;
  /** Selects what logs a line at its end. See `docs/messages.md#which-requests`. Default `true`. */
  readonly requests?: RequestLines;
  /**
   * Adds `readUnits`, `writeUnits` and `messageBytes` to these lines: the consumption of the run. Functions then
   * load the SDK when they start. See `docs/cost.md#the-cost-of-each-run`. Default `false`.
   */
  readonly cost?: boolean;
}

const levels: readonly string[] = ["debug", "info", "warn", "error"] satisfies readonly LogLevel[];

export const logChecks: Readonly<Record<keyof LogOptions, OptionCheck>> = {
  level: oneOf(levels, "debug, info, warn or error"),
  redact: kind((value) => Array.isArray(value) && value.every(isPath), "a list of dotted paths"),
  powertools: kind(isPowertoolsLogger, "an instance of Powertools' Logger"),
  requests: kind(
    isRequestLines,
    'true, false, "failed" or { slowerThanMs }, 0 or more milliseconds',
  ),
  cost: flag,
};

function isPath(value: unknown): boolean {
  return typeof value === "string" && /^[^.]+(\.[^.]+)*$/.test(value);
}

function isPowertoolsLogger(value: unknown): boolean {
  if (!isRecord(value) || typeof value["level"] !== "number") return false;
  return [...levels, "getPersistentLogAttributes"].every(
    (name) => typeof value[name] === "function",
  );
}

function isRequestLines(value: unknown): boolean {
  if (!isRecord(value)) return typeof value === "boolean" || value === "failed";
  const { slowerThanMs, ...others } = value;
  return typeof slowerThanMs === "number" && slowerThanMs >= 0 && Object.keys(others).length === 0;
}
