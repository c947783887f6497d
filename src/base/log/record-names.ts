import type { Variables } from "../process/environment.ts";

/**
 * Names that make CloudWatch treat a line as metrics (Embedded Metric Format and its version 0). No
 * field may have them, because fields may come from clients.
 */
export const metricNames: readonly string[] = Object.freeze(["_aws", "CloudWatchMetrics"]);

/**
 * Renames fields so that they overwrite nothing in a record (specification 2.5). A taken name
 * becomes `data_<name>` or `context_<name>`, with the prefix repeated until the name is free.
 */
export function renaming(
  prefix: "data" | "context",
  names: readonly string[],
  isTaken: (name: string) => boolean,
): (name: string) => string {
  let used: Set<string> | undefined;
  return (name) => {
    if (!isTaken(name)) return name;
    used ??= new Set(names);
    let free = `${prefix}_${name}`;
    while (isTaken(free) || used.has(free)) free = `${prefix}_${free}`;
    used.add(free);
    return free;
  };
}

export type TimeNames = readonly ["time"] | readonly ["time", "timestamp"];

/**
 * In Lambda's JSON log format, the platform treats a line without `timestamp` as INFO and may drop
 * it, even an error.
 */
export function timeNames(env: Variables): TimeNames {
  return env["AWS_LAMBDA_LOG_FORMAT"]?.trim().toUpperCase() === "JSON"
    ? ["time", "timestamp"]
    : ["time"];
}
