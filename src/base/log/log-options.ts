import type { LogLevel } from "./logger.ts";
import type { PowertoolsLogger } from "./powertools-logger.ts";

/**
 * Which requests, events, jobs, deliveries, schedules and runs write a line at their end: all, none, those that failed (a request
 * with a status from 400 up, or whose client did not get all of the answer), or those that failed or took longer.
 */
export type RequestLines = boolean | "failed" | { readonly slowerThanMs: number };

/** What is logged, and how (`log` of `buildServer`). */
export interface LogOptions {
  /** Default `debug` in development, otherwise `info`; `LOG_LEVEL` wins. */
  readonly level?: LogLevel;
  /** Dotted paths to redact, beside the names that are always redacted; `*` stands for any one name. */
  readonly redact?: readonly string[];
  /** A Powertools Logger of yours: its level, sampling, buffering and formatter apply. */
  readonly powertools?: PowertoolsLogger;
  /** Whether each request, event, job, delivery and schedule writes a line at its end. Default `true`. */
  readonly requests?: RequestLines;
}

/** Says of each option what it should be, where it is something else. */
export const logChecks: Readonly<Record<keyof LogOptions, (value: unknown) => string | undefined>> =
  {
    level: (value) => (levels.includes(value) ? undefined : "debug, info, warn or error"),
    redact: (value) =>
      Array.isArray(value) && value.every(isPath) ? undefined : "a list of dotted paths",
    powertools: (value) =>
      isPowertoolsLogger(value) ? undefined : "an instance of Powertools' Logger",
    requests: (value) =>
      isRequestLines(value)
        ? undefined
        : 'true, false, "failed" or { slowerThanMs }, 0 or more milliseconds',
  };

const levels: readonly unknown[] = ["debug", "info", "warn", "error"] satisfies readonly LogLevel[];

function isPath(value: unknown): boolean {
  return typeof value === "string" && /^[^.]+(\.[^.]+)*$/.test(value);
}

/** The members that the logger uses of an own Powertools Logger. */
function isPowertoolsLogger(value: unknown): boolean {
  if (!isRecord(value) || typeof value["level"] !== "number") return false;
  return ["debug", "info", "warn", "error", "getPersistentLogAttributes"].every(
    (name) => typeof value[name] === "function",
  );
}

function isRequestLines(value: unknown): boolean {
  if (!isRecord(value)) return typeof value === "boolean" || value === "failed";
  const { slowerThanMs, ...others } = value;
  return typeof slowerThanMs === "number" && slowerThanMs >= 0 && Object.keys(others).length === 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
