// own process: it fakes timers
import { expect, test, vi } from "vitest";
import { type KeyRing, newRingKey, parseKeyRing } from "./key-ring.ts";
import { createSecrets } from "./secrets.ts";

const place = ["table", "partition", "key"];
const keys = { k1: newRingKey(), k2: newRingKey() };
const k1 = parseKeyRing(JSON.stringify({ active: "k1", keys: { k1: keys.k1 } }));
const minute = 60_000;
const both = parseKeyRing(JSON.stringify({ active: "k2", keys }));

/** Secrets over a ring that is read as `stored` says at that moment. */
function over(begin: KeyRing | undefined, stored: { ring?: KeyRing; error?: Error } = {}) {
  const seen = { reads: 0, nowMs: 1_000_000 };
  const load = async () => {
    seen.reads += 1;
    await Promise.resolve();
    if (stored.ring === undefined) throw stored.error ?? new Error("SSM is down");
    return stored.ring;
  };
  const secrets = createSecrets({ load, clock: { now: () => seen.nowMs } });
  secrets.begin(begin, seen.nowMs);
  return { secrets, seen, stored };
}

test("a sealed value opens again, and names its key", async () => {
  const { secrets, seen } = over(k1);
  const sealed = await secrets.seal("hunter2", place);
  expect(sealed.key).toBe("k1");
  expect(secrets.open(sealed, place)).toEqual({ text: "hunter2" });
  expect(secrets.open(sealed, ["table", "elsewhere", "key"])).toMatchObject({
    locked: expect.stringContaining("k1"),
  });
  expect(seen.reads).toBe(0);
});

test("reads the ring again for an unknown key: once for all waiting callers, and at most every ten seconds", async () => {
  const sealed = await over(both).secrets.seal("hunter2", place);
  const { secrets, seen, stored } = over(k1, { ring: k1 });
  expect(secrets.prepare("k2")).toBeUndefined();
  expect(secrets.open(sealed, place)).toEqual({ locked: 'the key ring has no key "k2"' });

  seen.nowMs += 10_000;
  await Promise.all([secrets.prepare("k2"), secrets.prepare("k2"), secrets.prepare("k2")]);
  expect(seen.reads).toBe(1);
  expect(secrets.open(sealed, place)).toMatchObject({ locked: expect.any(String) });

  stored.ring = both;
  seen.nowMs += 9_999;
  expect(secrets.prepare("k2")).toBeUndefined();
  seen.nowMs += 1;
  await secrets.prepare("k2");
  expect(secrets.open(sealed, place)).toEqual({ text: "hunter2" });
  expect(secrets.prepare("k2")).toBeUndefined();
  expect(seen.reads).toBe(2);
});

test("keeps the known ring, for opening only, if it cannot be read", async () => {
  const { secrets, seen, stored } = over(k1, { error: new Error("throttled") });
  const sealed = await secrets.seal("hunter2", place);
  seen.nowMs += 10_000;
  await secrets.prepare("k2");
  expect(secrets.open(sealed, place)).toEqual({ text: "hunter2" });
  await expect(secrets.seal("new", place)).rejects.toMatchObject({
    code: "config_unavailable",
    status: 503,
    cause: new Error("throttled"),
  });

  stored.ring = both;
  seen.nowMs += 999;
  await expect(secrets.seal("new", place)).rejects.toMatchObject({
    status: 503,
    headers: { "retry-after": "1" },
  });
  seen.nowMs += 1;
  expect((await secrets.seal("new", place)).key).toBe("k2");
});

test("a value sealed with a removed key opens only in a process that has known the key", async () => {
  const { secrets, seen } = over(both, { ring: k1 });
  const sealed = await secrets.seal("hunter2", place);
  seen.nowMs += 10_000;
  expect(await secrets.active()).toBe("k1");
  expect(secrets.open(sealed, place)).toEqual({ text: "hunter2" });
  expect(over(k1).secrets.open(sealed, place)).toMatchObject({ locked: expect.any(String) });
});

test("does not wait for a ring that does not arrive, and says so", async () => {
  vi.useFakeTimers();
  const clock = { now: () => 1_000_000 + waited };
  let waited = 0;
  const failures: unknown[] = [];
  let fail: (error: Error) => void = () => {};
  const load = () => new Promise<KeyRing>((_, reject) => (fail = reject));
  const secrets = createSecrets({ load, clock, onFailure: (error) => failures.push(error) });
  secrets.begin(k1, 1_000_000);
  waited = 10_000;
  const prepared = secrets.prepare("k2");
  await vi.advanceTimersByTimeAsync(2_000);
  await prepared;
  fail(new Error("too late"));
  await vi.advanceTimersByTimeAsync(0);
  vi.useRealTimers();
  expect(failures).toEqual([new Error("too late")]);
  const sealed = await over(both).secrets.seal("hunter2", place);
  expect(secrets.open(sealed, place)).toEqual({
    locked: 'the key ring has no key "k2", and could not be read again',
  });
});

test("seals with a ring that is at most ten seconds old, for any clock", async () => {
  const { secrets, seen } = over(k1, { ring: both });
  seen.nowMs += 9_999;
  expect(await secrets.active()).toBe("k1");
  seen.nowMs += 1;
  expect(await Promise.all([secrets.active(), secrets.active()])).toEqual(["k2", "k2"]);
  expect(seen.reads).toBe(1);
  seen.nowMs -= 60_000;
  expect(await secrets.active()).toBe("k2");
  expect(seen.reads).toBe(2);
});

test("seals text that is not stored with a ring that is at most five minutes old, or an older one that cannot be read", async () => {
  const { secrets, seen, stored } = over(k1, { ring: both });
  seen.nowMs += 5 * minute - 1;
  expect((await secrets.sealPassing("next", place)).key).toBe("k1");
  seen.nowMs += 1;
  const sealed = await secrets.sealPassing("next", place);
  expect(sealed.key).toBe("k2");
  expect(secrets.open(sealed, place)).toEqual({ text: "next" });
  expect(seen.reads).toBe(1);
  delete stored.ring;
  seen.nowMs += 5 * minute;
  expect((await secrets.sealPassing("next", place)).key).toBe("k2");
  expect(seen.reads).toBe(2);
});

test("without a ring, seals and opens nothing", async () => {
  const { secrets } = over(undefined);
  const refused = { status: 501, code: "no_key_ring" };
  await expect(secrets.seal("hunter2", place)).rejects.toMatchObject(refused);
  await expect(secrets.sealPassing("hunter2", place)).rejects.toMatchObject(refused);
  const sealed = await over(k1).secrets.seal("hunter2", place);
  expect(secrets.prepare("k1")).toBeUndefined();
  expect(secrets.open(sealed, place)).toEqual({ locked: "there is no key ring" });
});

test("never reads a ring again that cannot change", async () => {
  const clock = { now: () => 1_000_000 };
  const secrets = createSecrets({ clock });
  secrets.begin(k1, 1_000_000);
  clock.now = () => 9_000_000;
  expect((await secrets.seal("hunter2", place)).key).toBe("k1");
  await secrets.refresh();
  expect(secrets.prepare("k2")).toBeUndefined();
});

test("for messages, a ring may be five minutes old before one of the callers reads it again", async () => {
  const { secrets, seen } = over(k1, { ring: both });
  seen.nowMs += 5 * minute - 1;
  expect(await secrets.recent()).toEqual({ ring: k1, isStale: false });
  expect(seen.reads).toBe(0);
  seen.nowMs += 1;
  const [first, second] = await Promise.all([secrets.recent(), secrets.recent("k1")]);
  expect(first).toEqual({ ring: both, isStale: false });
  // It has its key, and does not wait for what another has begun.
  expect(second.ring).toBe(k1);
  expect(await secrets.recent()).toEqual({ ring: both, isStale: false });
  expect(seen.reads).toBe(1);
});

test("reads the ring again for a message with an unknown key, at most every ten seconds, while the caller waits", async () => {
  const { secrets, seen, stored } = over(k1, { ring: k1 });
  expect((await secrets.recent("k2")).ring).toBe(k1);
  expect(seen.reads).toBe(0);
  seen.nowMs += 10_000;
  stored.ring = both;
  const found = await Promise.all([secrets.recent("k2"), secrets.recent("k2")]);
  expect(found.map(({ ring }) => ring)).toEqual([both, both]);
  expect(seen.reads).toBe(1);
});

test("does not read the ring again for a retired key", async () => {
  const retired = { k0: { proof: keys.k2, until: "2026-11-22T00:00:00Z" } };
  const { secrets, seen } = over(
    parseKeyRing(JSON.stringify({ active: "k1", keys: { k1: keys.k1 }, retired })),
  );
  seen.nowMs += 10_000;
  await secrets.recent("k0");
  expect(seen.reads).toBe(0);
});

test("keeps an unreadable ring for messages, reports it as stale, and retries every ten seconds", async () => {
  const { secrets, seen, stored } = over(k1);
  seen.nowMs += 5 * minute;
  expect(await secrets.recent()).toEqual({ ring: k1, isStale: true });
  seen.nowMs += 9_999;
  expect(await secrets.recent("k2")).toEqual({ ring: k1, isStale: true });
  expect(seen.reads).toBe(1);
  seen.nowMs += 1;
  stored.ring = both;
  expect(await secrets.recent("k2")).toEqual({ ring: both, isStale: false });
});

test("uses an unchangeable or missing ring as it is for messages", async () => {
  const fixed = createSecrets({ clock: { now: () => 1_000_000 } });
  expect(fixed.mayHaveRing()).toBe(false);
  fixed.begin(k1, 0);
  expect(fixed.mayHaveRing()).toBe(true);
  expect(await fixed.recent("k2")).toEqual({ ring: k1, isStale: false });
  const { secrets, seen } = over(undefined);
  seen.nowMs += 5 * minute;
  expect(await secrets.recent("k2")).toEqual({ ring: undefined, isStale: false });
  expect([seen.reads, secrets.mayHaveRing()]).toEqual([0, true]);
});
