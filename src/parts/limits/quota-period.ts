/** Time in which a quota counts. `forever` never starts again. */
export type QuotaWindow = "day" | "month" | "forever";

export interface QuotaPeriod {
  /** Local date or month: `2026-11-28`, `2026-11`, or `forever`. */
  readonly id: string;
  /** End of the period, when the next one starts, in epoch milliseconds. */
  readonly endsAtMs: number | undefined;
}

const hourMs = 3_600_000;
/** Longer than any local day or month, including changes of the clocks. */
const longestMs = { day: 50 * hourMs, month: 33 * 24 * hourMs };
const idLength = { day: 10, month: 7 };

/** Returns the period that contains a time, in whole days or months of the time zone. */
export function quotaPeriod(window: QuotaWindow, timeZone: string, nowMs: number): QuotaPeriod {
  if (window === "forever") return { id: window, endsAtMs: undefined };
  const dateOf = timeZone === "UTC" ? utcDate : localDates(timeZone);
  const idOf = (ms: number) => dateOf(ms).slice(0, idLength[window]);
  const id = idOf(nowMs);
  // Searches instead of computing midnight, which does not exist on some days of some zones.
  let [inside, outside] = [nowMs, nowMs + longestMs[window]];
  while (outside - inside > 1) {
    const middle = Math.floor((inside + outside) / 2);
    if (idOf(middle) > id) outside = middle;
    else inside = middle;
  }
  return { id, endsAtMs: outside };
}

function utcDate(ms: number): string {
  return new Date(ms).toISOString();
}

function localDates(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat("en-US-u-ca-iso8601-nu-latn", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  });
  return (ms) => {
    const parts = format.formatToParts(ms);
    const part = (type: string) => parts.find((one) => one.type === type)?.value;
    return `${part("year")}-${part("month")}-${part("day")}`;
  };
}
