import { getXRayTraceIdFromEnv } from "@aws-lambda-powertools/commons/utils/env";
import { levelNumbers } from "./levels.ts";
import { createRecordRules, LogContext } from "./log-context.ts";
import { type Print, recordFields } from "./log-record.ts";
import type { LogLevel } from "./logger.ts";
import type { Redaction } from "./redaction.ts";

/** Members of a Powertools Logger that keelson uses, from any version or copy of the package. */
export type PowertoolsLogger = {
  /** The number of the lowest level that the Logger prints. */
  readonly level: number;
  getPersistentLogAttributes(): Record<string, unknown>;
  /** Missing in older versions. */
  getCorrelationId?(): unknown;
} & Record<LogLevel, (message: string, attributes: Record<string, unknown>) => void>;

/**
 * Names that Powertools writes itself. It drops attributes with a name of the first group and fills
 * the names of the second group with its own values.
 */
const reservedByPowertools: ReadonlySet<string> = new Set([
  ...[
    "level",
    "message",
    "msg",
    "sampling_rate",
    "service",
    "timestamp",
    "__proto__",
    "constructor",
  ],
  ...[
    "cold_start",
    "function_arn",
    "function_memory_size",
    "function_name",
    "function_request_id",
    "tenant_id",
    "xray_trace_id",
  ],
]);

/**
 * Creates a print function that uses only the public methods of an application's Powertools Logger.
 * Each call passes the whole context as attributes, because concurrent requests share the instance
 * and it must not keep any request's data.
 *
 * @param otherwise Prints the line if the Logger throws, for example in its formatter.
 */
export function createPowertoolsPrint(
  powertools: PowertoolsLogger,
  redaction: Redaction,
  otherwise: Print,
) {
  const rules = createRecordRules(redaction, reservedByPowertools);
  const print: Print = (level, logger, msg, data) => {
    try {
      // The Logger's buffer may still take a line below its level, but it exists only within an
      // X-Ray trace.
      if (levelNumbers[level] < powertools.level && getXRayTraceIdFromEnv() === undefined) return;
      const own = powertools.getPersistentLogAttributes();
      const isTaken = (name: string) =>
        Object.hasOwn(own, name) ||
        (name === "correlation_id" && powertools.getCorrelationId?.() !== undefined);
      const fields = recordFields(logger.context, msg, data, { ...rules, isTaken });
      powertools[level](String(fields["msg"]), fields);
    } catch {
      otherwise(level, logger, msg, data);
    }
  };
  return { print, context: new LogContext(rules) };
}
