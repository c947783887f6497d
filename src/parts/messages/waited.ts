import type { Place } from "../limits/line.ts";
import { type Fields, objectOf, queueText } from "./envelope.ts";

/** Facts of a message that waits for a limit. keelson sends it again each time, as a new message. */
export interface Waited extends Partial<Place> {
  /** Number of times. */
  readonly times: number;
  /** Attempts before it last waited. Its receives since then are added. */
  readonly attempts: number;
  /** When it was first sent, in epoch milliseconds, if known. */
  readonly sinceMs?: number | undefined;
  /** Consumers of an event that failed for the last time and do not run while others wait. */
  readonly failed?: readonly string[] | undefined;
  /** Error of the first one. */
  readonly reason?: string | undefined;
  /** Receivers that have processed the event, and whose claims may expire before it is done. */
  readonly done?: readonly string[] | undefined;
}

export const neverWaited: Waited = Object.freeze({ times: 0, attempts: 0 });

/** Reads how a message has waited. Invalid values count as none. */
export function waitedOf(message: Fields): Waited {
  const { waited } = message;
  if (typeof waited !== "object" || waited === null) return neverWaited;
  const found = waited as { readonly [Name in keyof Waited]?: unknown };
  const { times, attempts, sinceMs, position, turn, reason } = found;
  const [failed, done] = [namesOf(found.failed), namesOf(found.done)];
  return {
    times: countOf(times),
    attempts: countOf(attempts),
    ...(Number.isSafeInteger(sinceMs) && { sinceMs: Number(sinceMs) }),
    ...(isPlace(position) && isPlace(turn) && { position, turn }),
    ...(failed.length > 0 && { failed }),
    ...(typeof reason === "string" && { reason: reason.slice(0, longestReason) }),
    ...(done.length > 0 && { done }),
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

/** Longest reason, and longest list of names in total, in characters. */
const [longestReason, mostNames] = [200, 1_000];

/** Names that do not fit are left out: their consumers run again whenever the message does. */
function namesOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  let left = mostNames;
  return value.filter((name): name is string => {
    if (typeof name !== "string" || !/^[\w.:-]+$/.test(name)) return false;
    left -= name.length;
    return left >= 0;
  });
}

/**
 * Returns a message with how it has waited as its first member. The rest stays byte for byte: JSON
 * that is parsed and written again may differ. Only a message of another sender is written again,
 * if it has a later member of this name, which would count.
 */
export function waitingText(text: string, waited: Waited): string {
  const message = objectOf(text, "the message");
  const before = startOf(waitedOf(message));
  const start = startOf(waited);
  const rest = text.startsWith(before) ? text.slice(before.length) : text.replace(/^\s*\{\s*/, "");
  if (startOf(waitedOf(objectOf(start + rest, "the message"))) === start) return start + rest;
  const { waited: _before, ...content } = message;
  return start + queueText(JSON.stringify(content)).slice(1);
}

/** First member of a message that waits, as keelson writes it. */
function startOf(waited: Waited): string {
  return `{"waited":${queueText(JSON.stringify(waitedOf({ waited })))},`;
}

/** Returns a message with no attempts and failures so far. The rest stays byte for byte. */
export function untriedText(text: string): string {
  const waited = readWaited(text);
  const start = startOf(waited);
  if (!text.startsWith(start)) return text;
  const untried = { ...waited, attempts: 0, failed: undefined, reason: undefined };
  return startOf(untried) + text.slice(start.length);
}

function readWaited(text: string): Waited {
  try {
    return waitedOf(objectOf(text, "the message"));
  } catch {
    return neverWaited; // a dead letter may be anything
  }
}

const waitsMs = Object.freeze([1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 60_000] as const);

/** Returns how long a message waits that has waited `times` times: 1 s to 60 s, give or take a quarter. */
export function waitMs(times: number, random: () => number = Math.random): number {
  const ms = waitsMs[Math.min(times, waitsMs.length - 1)] as number; // safe: the index is in range
  return Math.round(ms * (0.75 + random() / 2));
}
