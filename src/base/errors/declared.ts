import type { BootProblem } from "./boot.ts";

/** Options before validation; plain JavaScript can pass anything. */
export type RawOptions = Readonly<Record<string, unknown>>;

export type Report = (problem: Omit<BootProblem, "feature">) => void;

export function unknownOptions(
  key: string,
  options: RawOptions,
  known: readonly string[],
  report: Report,
): void {
  for (const name of Object.keys(options ?? {})) {
    if (!known.includes(name)) {
      report({
        key,
        rule: "unknown-option",
        message: `unknown option ${JSON.stringify(name)}`,
        fix: `known are ${known.join(", ")}`,
      });
    }
  }
}

/** Format of an event type (specification 2.8). */
export const eventType = /^[a-z][a-z0-9-]{0,62}\.[a-z][a-z0-9-]{0,62}$/;

export function isEventType(type: string): boolean {
  return eventType.test(type);
}
