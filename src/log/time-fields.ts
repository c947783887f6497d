import type { Clock } from "../process/clock.ts";

/** Names under which a record has its time. */
export type TimeNames = readonly ["time"] | readonly ["time", "timestamp"];

/**
 * Finds under which names the time is needed: `time`, and in Lambda's JSON log format `timestamp` as well, without which
 * the platform takes a line for INFO and may drop it, errors too.
 */
export function timeNames(env: Readonly<Record<string, string | undefined>>): TimeNames {
  return env["AWS_LAMBDA_LOG_FORMAT"]?.trim().toUpperCase() === "JSON" ? ["time", "timestamp"] : ["time"];
}

/** Creates a function that gives the clock's time in ISO 8601, UTC, as members of a record. Many lines share one: it is written once. */
export function createTimeFields(clock: Clock, names: TimeNames): () => string {
  let last = Number.NaN;
  let text = "";
  return () => {
    const now = clock.now();
    if (now !== last) {
      const time = new Date(now).toISOString();
      text = names.map((name) => `"${name}":"${time}"`).join(",");
      last = now;
    }
    return text;
  };
}
