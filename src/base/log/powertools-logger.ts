import { getXRayTraceIdFromEnv } from "@aws-lambda-powertools/commons/utils/env";
import { createRecordRules, type Print, recordFields } from "./log-record.ts";
import { type LogLevel, levelNumbers } from "./logger.ts";
import type { Redaction } from "./redaction.ts";

/** Members of any version or copy of a Powertools Logger that keelson uses. */
export type PowertoolsLogger = {
  /** Number of the lowest printed level. */
  readonly level: number;
  getPersistentLogAttributes(): Record<string, unknown>;
  /** Absent in older versions of Powertools. */
  getCorrelationId?(): unknown;
} & Record<LogLevel, (message: string, attributes: Record<string, unknown>) => void>;

/** Names for which Powertools drops a given attribute or writes its own value. */
const reservedByPowertools: ReadonlySet<string> = new Set([
  ..."level message msg sampling_rate service timestamp __proto__ constructor".split(" "),
  ..."cold_start function_arn function_memory_size function_name function_request_id".split(" "),
  ...["tenant_id", "xray_trace_id"],
]);

/**
 * Concurrent requests share the application's Logger, so each call passes its whole context.
 * `otherwise` prints if the Logger throws.
 */
export function createPowertoolsPrint(
  powertools: PowertoolsLogger,
  redaction: Redaction,
  otherwise: Print,
) {
  const rules = createRecordRules(redaction, reservedByPowertools);
  const print: Print = (level, logger, msg, data) => {
    try {
      // Within an X-Ray trace, the Logger may buffer a line below its level, so it gets the line.
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
  return { print, rules };
}
