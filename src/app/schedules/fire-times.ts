import { Cron } from "croner";

/** When a schedule fires, in milliseconds since the epoch. */
export interface FireTimes {
  /** The last time up to and including `atMs`; `undefined` where there is none. */
  last(atMs: number): number | undefined;
  /** The first time after `atMs`; `undefined` where there is none. */
  next(atMs: number): number | undefined;
}

/**
 * Reads when a schedule fires. The hours decide what a change of daylight saving does:
 *
 * | hours | such as | the clock skips a time | the clock repeats a time |
 * |---|---|---|---|
 * | every, or every `n`th | `*`, `0-23`, `*`+`/2` | nothing fires in it | each pass fires |
 * | any others | `2`, `8-18`, `2,14` | it fires as soon as the clock goes on | the first pass fires |
 *
 * @param cron - what `cronProblem` finds nothing wrong with.
 */
export function fireTimes(cron: string, timeZone: string): FireTimes {
  const times = new Cron(forCroner(cron), {
    paused: true,
    mode: "5-part",
    timezone: timeZone,
    fixedTimeRule: "no-wildcard",
  });
  return {
    // It takes no times at the reference, but those in the same second.
    last: (atMs) => times.previousRuns(1, new Date(atMs + 1))[0]?.getTime(),
    next: (atMs) => times.nextRun(new Date(atMs))?.getTime(),
  };
}

/**
 * Writes an expression so that croner makes the same difference: to it a step in either field, and no list of all hours, says that
 * real time counts.
 */
export function forCroner(cron: string): string {
  const [minutes = "", hours = "", ...days] = cron.split(" ");
  const listed = numbersOf(hours, 24);
  if (listed.length === 24) return [minutes, "*", ...days].join(" ");
  if (hours.split(",").some((part) => part.startsWith("*"))) return cron;
  return [numbersOf(minutes, 60).join(","), listed.join(","), ...days].join(" ");
}

/** The numbers that a field stands for, below `end`, in their order. */
function numbersOf(field: string, end: number): readonly number[] {
  const numbers = new Set<number>();
  for (const part of field.split(",")) {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to = from] = range === "*" ? ["0", String(end - 1)] : range.split("-");
    for (let number = Number(from); number <= Number(to); number += Number(step))
      numbers.add(number);
  }
  return [...numbers].sort((one, other) => one - other);
}
