import { Cron } from "croner";
import { hoursOf, minutesOf } from "./cron-expression.ts";

/**
 * Times of a schedule, in milliseconds since the epoch. The hour field determines the effect of a
 * daylight saving change:
 *
 * | hours | examples | the clock skips a time | the clock repeats a time |
 * |---|---|---|---|
 * | every, or every `n`th | `*`, `0-23`, `*`+`/2` | no run in the skipped time | runs in each pass |
 * | any others | `2`, `8-18`, `2,14` | runs right after the skipped time | runs in the first pass |
 */
export function fireTimes(cron: string, timeZone: string) {
  const times = new Cron(forCroner(cron), {
    paused: true,
    mode: "5-part",
    timezone: timeZone,
    fixedTimeRule: "no-wildcard",
  });
  return {
    /** The last time up to and including `atMs`, which `previousRuns` would exclude. */
    last: (atMs: number) => times.previousRuns(1, new Date(atMs + 1))[0]?.getTime(),
    next: (atMs: number) => times.nextRun(new Date(atMs))?.getTime() ?? Infinity,
  };
}

/**
 * Adapts an expression to {@link fireTimes}: croner follows elapsed time if the minute or hour
 * field has a step, but not for a list of all hours.
 */
export function forCroner(cron: string) {
  const [minutes = "", hours = "", ...days] = cron.split(" ");
  const listed = hoursOf(hours);
  if (listed.length === 24) return [minutes, "*", ...days].join(" ");
  if (hours.split(",").some((part) => part.startsWith("*"))) return cron;
  return [minutesOf(minutes).join(","), listed.join(","), ...days].join(" ");
}
