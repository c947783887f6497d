import { afterEach, expect, test, vi } from "vitest";
import type { SecretOwner } from "./api-key.ts";
import { createApiKeys } from "./api-keys.ts";
import { generateSecret, hashOfSecret } from "./secret.ts";

function stored(...keys: readonly (Partial<SecretOwner> & { readonly secret: string })[]) {
  const owners = new Map<string, SecretOwner>();
  const put = ({ secret, ...owner }: (typeof keys)[number]) =>
    owners.set(hashOfSecret(secret), {
      ...{ id: "key_1", tenantId: "acme", roles: [], endsMs: undefined },
      ...owner,
    });
  for (const key of keys) put(key);
  const seen = { reads: 0, uses: [] as string[], lost: [] as unknown[] };
  let nowMs = 1_000_000;
  let waiting: Promise<void> | undefined;
  const store = {
    find: async (hash: string) => {
      seen.reads += 1;
      const owner = owners.get(hash);
      await waiting;
      return owner;
    },
    noteUse: async ({ id }: { readonly id: string }, atMs: number, beforeMs: number) => {
      seen.uses.push(`${id} ${atMs} ${beforeMs}`);
      if (id === "key_lost") throw new Error("throttled");
    },
  };
  const keysOf = createApiKeys({
    store: async () => store as never, // safe: the rest of the store is not called
    clock: { now: () => nowMs },
    onLostUse: (error) => seen.lost.push(error),
  });
  return {
    ...{ keys: keysOf, seen, owners, put },
    at: (ms: number) => {
      nowMs = ms;
    },
    hold: () => {
      const held = Promise.withResolvers<void>();
      waiting = held.promise;
      return () => {
        waiting = undefined;
        held.resolve();
      };
    },
  };
}

const secret = generateSecret();

afterEach(() => vi.restoreAllMocks());

test("a store that does not answer fails after two seconds, and loses the note of a use", async () => {
  const waits: (() => void)[] = [];
  const real = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms: number) =>
    ms === 2_000 ? void waits.push(run) : real(run, ms)) as never); // safe: nothing else of it is used
  const never = () => new Promise<never>(() => {});
  const owner: SecretOwner = { id: "key_1", tenantId: "acme", roles: [], endsMs: undefined };
  const store = { find: vi.fn(never), noteUse: never };
  const lost: unknown[] = [];
  const keys = createApiKeys({
    store: async () => store as never, // safe: the rest of the store is not called
    clock: { now: () => 0 },
    onLostUse: (error) => lost.push(error),
  });
  const verifying = Promise.allSettled([keys.verify(secret), keys.verify(secret)]);
  await vi.waitUntil(() => waits.length === 1);
  waits.pop()?.();
  const late = new Error("the store has not answered within 2000 ms");
  expect(await verifying).toEqual([late, late].map((reason) => ({ status: "rejected", reason })));
  store.find.mockResolvedValue(owner as never); // safe: the type is that of `never`
  const second = keys.verify(secret);
  await vi.waitUntil(() => waits.length === 2); // the first is the read's, which has ended
  waits.pop()?.();
  expect(await second).toEqual(owner);
  expect(lost).toEqual([late]);
});

test("a read from before the process was frozen holds up no later request", async () => {
  const { keys, seen, at, owners, hold } = stored({ secret });
  const release = hold();
  const before = keys.verify(secret);
  while (seen.reads === 0) await Promise.resolve();
  owners.clear();
  at(1_002_000);
  const after = keys.verify(secret);
  await vi.waitUntil(() => seen.reads === 2);
  release();
  expect([await before, await after].map((owner) => owner?.id)).toEqual(["key_1", undefined]);
  expect(await keys.verify(secret)).toBeUndefined();
  expect(seen.reads).toBe(2);
});

test("a secret ends at its very millisecond, although it is known, and then costs no reads", async () => {
  const { keys, seen, at } = stored({ secret, endsMs: 1_002_000 });
  at(1_001_999);
  expect(await keys.verify(secret)).toMatchObject({ id: "key_1" });
  at(1_002_000);
  expect(await keys.verify(secret)).toBeUndefined();
  expect(keys.atHand(secret)).toBeUndefined();
  at(1_061_999);
  expect(await keys.verify(secret)).toBeUndefined();
  expect(seen.reads).toBe(1);
});

test("a revocation elsewhere applies within five seconds of the start of the read", async () => {
  const { keys, seen, at, owners, hold } = stored({ secret });
  const release = hold();
  const verifying = keys.verify(secret);
  while (seen.reads === 0) await Promise.resolve();
  at(1_004_000);
  owners.clear();
  release();
  expect(await verifying).toBeDefined();
  at(1_004_999);
  expect(await keys.verify(secret)).toBeDefined();
  at(1_005_000);
  expect(await keys.verify(secret)).toBeUndefined();
  expect(seen.reads).toBe(2);
});

test("a revocation in this process applies to requests that join a read from before", async () => {
  const { keys, seen, owners, hold } = stored({ secret });
  const release = hold();
  const before = keys.verify(secret);
  while (seen.reads === 0) await Promise.resolve();
  owners.clear();
  keys.forget("key_1");
  const after = keys.verify(secret);
  release();
  expect([await before, await after].map((owner) => owner?.id)).toEqual(["key_1", undefined]);
  expect(await keys.verify(secret)).toBeUndefined();
});

test("a revocation forgets the secrets of its key alone", async () => {
  const other = generateSecret();
  const { keys, seen } = stored({ secret }, { secret: other, id: "key_2" });
  await keys.verify(secret);
  await keys.verify(other);
  keys.forget("key_1");
  expect(keys.atHand(secret)).toBeUndefined();
  expect(keys.atHand(other)).toMatchObject({ id: "key_2" });
  expect(keys.atHand("kln_")).toBeUndefined();
  expect(seen.reads).toBe(2);
});

test("a clock that is set back prolongs nothing", async () => {
  const { keys, seen, at, owners } = stored({ secret });
  await keys.verify(secret);
  owners.clear();
  at(900_000);
  expect(await keys.verify(secret)).toBeUndefined();
  expect(seen.reads).toBe(2);
});

test("unknown secrets take bounded memory: the oldest tenth is read again", async () => {
  const { keys, seen } = stored();
  const unknown = Array.from({ length: 10_001 }, () => generateSecret());
  for (const text of unknown) await keys.verify(text);
  const [first = ""] = unknown;
  await keys.verify(unknown[1_001] ?? "");
  expect(seen.reads).toBe(10_001);
  await keys.verify(first);
  expect(seen.reads).toBe(10_002);
});

test("a use is noted every 30 minutes and process, and a lost note stops nobody", async () => {
  const lost = generateSecret();
  const { keys, seen, at } = stored({ secret }, { secret: lost, id: "key_lost" });
  await keys.verify(secret);
  at(2_799_999);
  await keys.verify(secret);
  at(2_800_000);
  await keys.verify(secret);
  expect(seen.uses).toEqual(["key_1 1000000 -800000", "key_1 2800000 1000000"]);
  expect(await keys.verify(lost)).toMatchObject({ id: "key_lost" });
  expect(seen.lost).toEqual([new Error("throttled")]);
});

test.each([30, 29])(
  "the noted use is at most an hour old, even if another process noted it %i minutes before",
  async (before) => {
    const minute = 60_000;
    const owner: SecretOwner = { id: "key_1", tenantId: "acme", roles: [], endsMs: undefined };
    let [nowMs, notedMs] = [0, -Infinity];
    const store = {
      find: async () => owner,
      noteUse: async (_key: unknown, atMs: number, beforeMs: number) => {
        if (notedMs <= beforeMs) notedMs = atMs;
      },
    };
    const processOf = () =>
      createApiKeys({
        store: async () => store as never, // safe: the rest of the store is not called
        clock: { now: () => nowMs },
        onLostUse: (error) => expect.unreachable(String(error)),
      });
    const [one, other] = [processOf(), processOf()];
    await one.verify(secret);
    for (nowMs = before * minute; nowMs <= 120 * minute; nowMs += minute) {
      await other.verify(secret);
      expect(nowMs - notedMs).toBeLessThanOrEqual(60 * minute);
    }
  },
);

test("a failed read is not remembered", async () => {
  const { keys, seen, hold, put } = stored();
  const failing = createApiKeys({
    store: () => Promise.reject(new Error("the store is away")),
    clock: { now: () => 0 },
    onLostUse: () => {},
  });
  await expect(failing.verify(secret)).rejects.toThrow("the store is away");
  await expect(failing.verify(secret)).rejects.toThrow("the store is away");
  const release = hold();
  const both = Promise.all([keys.verify(secret), keys.verify(secret)]);
  release();
  expect(await both).toEqual([undefined, undefined]);
  put({ secret });
  expect(seen.reads).toBe(1);
});
