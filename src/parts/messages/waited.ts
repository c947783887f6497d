import type { Place } from "../limits/line.ts";
import type { Fields } from "./envelope.ts";

/** Facts of a message that waits for a limit. keelson sends it again each time, as a new message. */
export interface Waited extends Partial<Place> {
  /** Number of times. */
  readonly times: number;
  /** Attempts before it last waited. Its receives since then are added. */
  readonly attempts: number;
  /** When it was first sent, in epoch milliseconds, if known. */
  readonly sinceMs?: number | undefined;
}

export const neverWaited: Waited = Object.freeze({ times: 0, attempts: 0 });

/** Reads how a message has waited. Invalid values count as none. */
export function waitedOf(message: Fields): Waited {
  const { waited } = message;
  if (typeof waited !== "object" || waited === null) return neverWaited;
  const found = waited as { readonly [Name in keyof Waited]?: unknown };
  const { times, attempts, sinceMs, position, turn } = found;
  return {
    times: countOf(times),
    attempts: countOf(attempts),
    ...(Number.isSafeInteger(sinceMs) && { sinceMs: Number(sinceMs) }),
    ...(isPlace(position) && isPlace(turn) && { position, turn }),
  };
}

function isPlace(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

/** Returns the place of a job in the line of its group, if it has one. */
export function placeOf({ position, turn }: Waited = neverWaited): Place | undefined {
  return position === undefined || turn === undefined ? undefined : { position, turn };
}

const mostCounted = 1_000_000;

function countOf(value: unknown): number {
  const count = Number(value);
  return Number.isSafeInteger(value) && count >= 0 && count <= mostCounted ? count : 0;
}

/**
 * Returns a message with how it has waited as its first member. The rest stays byte for byte: JSON
 * that is parsed and written again may differ. Only a message of another sender is written again,
 * if it has a later member of this name, which would count.
 */
export function waitingText(text: string, waited: Waited): string {
  const start = `{"waited":${JSON.stringify(waited)},`;
  const kept =
    start + text.replace(/^\s*\{\s*/, "").replace(/^"waited":\{(?:"\w+":-?\d+,?)*\},/, "");
  const { waited: read, ...content } = JSON.parse(kept) as Fields; // safe: it was read before
  const isRead = JSON.stringify(read) === JSON.stringify(waited);
  return isRead ? kept : start + sendable(JSON.stringify(content)).slice(1);
}

/** SQS refuses these two characters, but not their escape sequences. */
function sendable(json: string): string {
  return json.replace(/[\uFFFE\uFFFF]/g, (character) =>
    character === "\uFFFE" ? "\\ufffe" : "\\uffff",
  );
}

/** Returns a message with no attempts so far. The rest stays byte for byte. */
export function untriedText(text: string): string {
  return text.replace(/^(?<before>\{"waited":\{[^{}]*"attempts":)\d+/, "$<before>0");
}

const waitsMs = Object.freeze([1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000] as const);

/** Returns how long a message waits that has waited `times` times: 1 s to 60 s, give or take a quarter. */
export function waitMs(times: number, random: () => number = Math.random): number {
  const ms = waitsMs[Math.min(times, waitsMs.length - 1)] as number; // safe: the index is in range
  return Math.round(ms * (0.75 + random() / 2));
}
