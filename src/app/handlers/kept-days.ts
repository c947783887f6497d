import type { Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { knownOptions, problemsOf } from "./requirements.ts";

const mostKeptDays = 3_650;

/** Returns the retention of an event in days, and reports invalid options. */
export function keptDaysOf(key: string, options: unknown, report: Report): number | undefined {
  if (options === undefined) return undefined;
  const { keepDays, keep } = knownOptions(key, options, ["keepDays", "keep"], report);
  if (keep === true && keepDays === undefined) return Number.POSITIVE_INFINITY;
  const days = Number(keepDays);
  if (keep === undefined && Number.isInteger(keepDays) && days >= 1 && days <= mostKeptDays)
    return days;
  const fix = `use { keepDays: 30 }, from 1 to ${mostKeptDays}, or { keep: true } for ever`;
  problemsOf(key, report)("event-keep", `its third argument is ${quoted(options)}`, fix);
  return undefined;
}
