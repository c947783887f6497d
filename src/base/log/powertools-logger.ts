import { getXRayTraceIdFromEnv } from "@aws-lambda-powertools/commons/utils/env";
import { levelNumbers } from "./levels.ts";
import { createRecordRules, LogContext } from "./log-context.ts";
import { type Print, recordFields } from "./log-record.ts";
import type { LogLevel } from "./logger.ts";
import type { Redaction } from "./redaction.ts";

/** What is used of a Powertools Logger: any version's, or that of another copy. */
export type PowertoolsLogger = {
  /** The lowest level that it prints, as a number. */
  readonly level: number;
  getPersistentLogAttributes(): Record<string, unknown>;
  /** Of versions that have it. */
  getCorrelationId?(): unknown;
} & Record<LogLevel, (message: string, attributes: Record<string, unknown>) => void>;

/** Names that Powertools writes itself: it drops those of the first line from attributes, and takes those of the second for its own. */
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
 * Creates printing by an own Powertools Logger, by its public methods alone. Each call passes all of its
 * context as attributes: nothing of a request is ever kept in the instance, which concurrent requests share.
 *
 * @param otherwise prints where the Logger throws, its formatter for example
 */
export function createPowertoolsPrint(
  powertools: PowertoolsLogger,
  redaction: Redaction,
  otherwise: Print,
) {
  const rules = createRecordRules(redaction, reservedByPowertools);
  const print: Print = (level, logger, msg, data) => {
    try {
      // A line below its level may still go into its buffer, which exists only within an X-Ray trace.
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
