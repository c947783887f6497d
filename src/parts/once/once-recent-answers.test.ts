import { expect, test } from "vitest";
import { createRecentAnswers, type RecentAnswer } from "./once.ts";

const startMs = 1_700_000_000_000;
const expiresAt = startMs / 1000 + 300;
/** Largest size of an answer in memory, with its key and 256 bytes for the rest. */
const largest = 65_536;

function start() {
  const now = { ms: startMs };
  const recent = createRecentAnswers({ now: () => now.ms });
  /** Puts an answer that takes up `bytes` in memory. */
  const put = (key: string, bytes: number, more: Partial<RecentAnswer> = {}) => {
    const body = "x".repeat(bytes - 256 - key.length);
    const answer = { status: 200, headers: {}, cookies: [], body };
    recent.put(key, { answer, fingerprint: "f", expiresAt, ...more });
    return answer;
  };
  const has = (...keys: readonly string[]) => keys.map((key) => recent.get(key) !== undefined);
  return { now, recent, put, has };
}
/** The keys `k0` and so on. */
const keys = (count: number) => Array.from({ length: count }, (_, n) => `k${n}`);

test("an answer is found under its key, with its fingerprint and expiry", () => {
  const { recent, put } = start();
  const answer = put("a", 300);
  expect(recent.get("a")).toMatchObject({ answer, fingerprint: "f", expiresAt });
  expect(recent.get("b")).toBeUndefined();
});

test("an answer is gone two seconds before its claim expires, for good", () => {
  const { now, put, has } = start();
  put("a", 300);
  now.ms = expiresAt * 1000 - 2_001;
  expect(has("a")).toEqual([true]);
  now.ms += 1;
  expect(has("a")).toEqual([false]);
  now.ms = startMs;
  expect(has("a")).toEqual([false]);
});

test("an answer of 64 KiB is kept and a larger one is not, nor is the one that it replaces", () => {
  const { put, has, recent } = start();
  put("a", largest);
  put("b", largest + 1);
  expect(has("a", "b")).toEqual([true, false]);
  put("a", largest + 1);
  expect(has("a")).toEqual([false]);
  const empty = { status: 204, headers: {}, cookies: [], body: undefined };
  recent.put("c", { answer: empty, fingerprint: undefined, expiresAt });
  expect(recent.get("c")?.answer).toBe(empty);
});

test("a key counts towards the size of its answer", () => {
  const { recent, has } = start();
  const answer = { status: 204, headers: {}, cookies: [], body: undefined };
  const [fits, long] = ["k".repeat(largest - 256), "k".repeat(largest - 255)];
  for (const key of [fits, long]) recent.put(key, { answer, fingerprint: undefined, expiresAt });
  expect(has(fits, long)).toEqual([true, false]);
});

test("2,000 answers are kept; one more evicts the oldest, down to 1,800", () => {
  const { put, has } = start();
  for (const key of keys(2_000)) put(key, 300);
  expect(has("k0", "k1999")).toEqual([true, true]);
  put("k2000", 300);
  expect(has("k0", "k200", "k201", "k1999", "k2000")).toEqual([false, false, true, true, true]);
  expect(has(...keys(2_001)).filter(Boolean)).toHaveLength(1_800);
});

test("8 MiB of answers are kept; more evicts the oldest, down to nine tenths", () => {
  const { put, has } = start();
  for (const key of keys(128)) put(key, largest);
  expect(has("k0", "k127")).toEqual([true, true]);
  put("k128", 300);
  expect(has("k0", "k12", "k13", "k128")).toEqual([false, false, true, true]);
});

test("an answer that is put again replaces the earlier one, takes its room once, and is the newest", () => {
  const { put, has, recent } = start();
  for (const key of keys(128)) put(key, largest);
  for (let n = 0; n < 200; n += 1) put("k0", largest);
  expect(has(...keys(128)).every(Boolean)).toBe(true);
  const newest = put("k0", largest - 1);
  expect(recent.get("k0")?.answer).toBe(newest);
  put("k128", largest);
  expect(has("k0", "k1", "k128")).toEqual([true, false, true]);
});

test("an answer that has expired gives its room back once it was asked for", () => {
  const { now, put, has } = start();
  for (const key of keys(127)) put(key, largest, { expiresAt: startMs / 1000 + 10 });
  put("first", largest);
  now.ms += 10_000;
  expect(has(...keys(127)).some(Boolean)).toBe(false);
  for (const key of keys(127)) put(key, largest);
  expect(has("first", ...keys(127)).every(Boolean)).toBe(true);
});
