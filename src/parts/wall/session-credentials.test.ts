import fc from "fast-check";
import { expect, test, vi } from "vitest";
import {
  createSessions,
  maxSessions,
  type SessionCredentials,
  type SessionTag,
  sessionSeconds,
} from "./session-credentials.ts";

const tagOf = (value: string): SessionTag => ({ key: "tenant", value });
const acme = tagOf("acme");

/** Sessions of a role that a test answers for. */
function setup(most?: number) {
  const clock = { nowMs: 1_000_000, now: () => clock.nowMs };
  const calls: {
    readonly tag: SessionTag;
    succeed(): SessionCredentials;
    fail(error: Error): void;
  }[] = [];
  const onStale = vi.fn();
  const find = createSessions({
    clock,
    onStale,
    ...(most === undefined ? {} : { most }),
    assume: (tag) =>
      new Promise((resolve, reject) => {
        const credentials = {
          accessKeyId: `${tag.value}-${calls.length}`,
          secretAccessKey: "s",
          sessionToken: "t",
        };
        calls.push({
          tag,
          fail: reject,
          succeed: () => {
            resolve(credentials);
            return credentials;
          },
        });
      }),
  });
  const given = async (tag = acme) => (await find(tag)).accessKeyId;
  const pass = (seconds: number) => {
    clock.nowMs += seconds * 1_000;
  };
  return { clock, calls, given, onStale, pass };
}

/** Lets what has been answered arrive. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("fetches credentials once for concurrent callers, and keeps them until five minutes before they expire", async () => {
  const { calls, given, pass } = setup();
  const all = Promise.all([given(), given(), given()]);
  expect(calls.map(({ tag }) => tag)).toEqual([acme]);
  calls[0]?.succeed();
  expect(await all).toEqual(["acme-0", "acme-0", "acme-0"]);

  pass(sessionSeconds - 301);
  expect(await given()).toBe("acme-0");
  expect(calls).toHaveLength(1);
});

test("renews credentials once while the old ones are still in use, and then switches to the new ones", async () => {
  const { calls, given, pass } = setup();
  const first = given();
  calls[0]?.succeed();
  await first;
  pass(sessionSeconds - 300);
  expect(await Promise.all([given(), given()])).toEqual(["acme-0", "acme-0"]);
  expect(calls).toHaveLength(2);
  calls[1]?.succeed();
  await settle();
  expect(await given()).toBe("acme-1");
});

test("uses credentials that cannot be renewed until a minute before they expire, and reports the failure", async () => {
  const { calls, given, onStale, pass } = setup();
  const first = given();
  calls[0]?.succeed();
  await first;
  pass(sessionSeconds - 300);
  expect(await Promise.all([given(), given()])).toEqual(["acme-0", "acme-0"]);
  const error = new Error("throttled");
  calls[1]?.fail(error);
  await settle();
  expect(onStale.mock.calls).toEqual([[acme, error]]);
  expect(await given()).toBe("acme-0"); // within the second of the failure: nobody asks
  expect(calls).toHaveLength(2);
  pass(239);
  expect(await given()).toBe("acme-0");
  expect(calls).toHaveLength(3);
  calls[2]?.fail(error);
  await settle();
  pass(1);
  const late = given();
  calls[3]?.succeed();
  expect(await late).toBe("acme-3");
});

test("caches a failure for a second, after which the next caller retries", async () => {
  const { calls, given, pass } = setup();
  const error = new Error("denied");
  const both = Promise.allSettled([given(), given()]);
  calls[0]?.fail(error);
  expect(await both).toEqual([
    { status: "rejected", reason: error },
    { status: "rejected", reason: error },
  ]);
  await expect(given()).rejects.toBe(error);
  expect(calls).toHaveLength(1);
  pass(1);
  const again = given();
  calls[1]?.succeed();
  expect(await again).toBe("acme-1");
});

test("fetches credentials again after the clock is set back, and forgets an earlier failure", async () => {
  const { calls, given, pass } = setup();
  const first = given();
  calls[0]?.succeed();
  await first;
  pass(-7_200);
  const second = given();
  calls[1]?.fail(new Error("denied"));
  await expect(second).rejects.toThrow("denied");
  pass(-10);
  const third = given();
  calls[2]?.succeed();
  expect(await third).toBe("acme-2");
});

test("keeps the thousand most recently used sessions", async () => {
  const { calls, given } = setup();
  for (let index = 0; index < maxSessions; index++) {
    const asked = given(tagOf(`t${index}`));
    calls[index]?.succeed();
    await asked;
  }
  expect(await given(tagOf("t0"))).toBe("t0-0");
  const one = given(tagOf("one more"));
  calls[maxSessions]?.succeed();
  await one;
  expect(await given(tagOf("t0"))).toBe("t0-0");
  expect(calls).toHaveLength(maxSessions + 1);
  void given(tagOf("t1")).catch(() => undefined);
  expect(calls).toHaveLength(maxSessions + 2);
});

test("a tenant with the same value as another tag has its own session", () => {
  const { calls, given } = setup();
  void given({ key: "across", value: "true" });
  void given({ key: "tenant", value: "true" });
  expect(calls.map(({ tag }) => tag.key)).toEqual(["across", "tenant"]);
});

test("every caller gets valid credentials of its own session, without duplicate concurrent fetches, in any order", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("ask" as const), tenant: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({ do: fc.constant("answer" as const), at: fc.nat(5), fails: fc.boolean() }),
    fc.record({
      do: fc.constant("pass" as const),
      seconds: fc.constantFrom(0.5, 1, 240, 301, 3_000, 3_600, -600),
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60 }),
      fc.constantFrom(2, 10),
      async (steps, most) => {
        const { calls, clock, given, pass } = setup(most);
        const takenMs: number[] = [];
        const open = new Set<number>();
        const wrong: string[] = [];
        const answer = (at: number, fails: boolean) => {
          const index = [...open][at] ?? -1;
          open.delete(index);
          if (fails) calls[index]?.fail(new Error("no"));
          else calls[index]?.succeed();
        };
        for (const next of steps) {
          // A call of STS takes seconds.
          if (next.do === "pass" && (open.size === 0 || next.seconds === 0.5)) pass(next.seconds);
          if (next.do === "answer") answer(next.at, next.fails);
          if (next.do === "ask") {
            const askedMs = clock.nowMs;
            const asked = given(tagOf(next.tenant)).then(
              (id) => {
                const [tenant, index] = id.split("-");
                const ageMs = askedMs - (takenMs[Number(index)] ?? 0);
                if (tenant !== next.tenant || ageMs >= (sessionSeconds - 60) * 1_000)
                  wrong.push(`${next.tenant} got ${id}, ${ageMs} ms old`);
              },
              (error: Error) => error.message === "no" || wrong.push(error.message),
            );
            await Promise.race([asked, settle()]);
          }
          for (let index = takenMs.length; index < calls.length; index++) {
            takenMs[index] = clock.nowMs;
            open.add(index);
          }
          await settle();
          const under = [...open].map((index) => calls[index]?.tag.value);
          if (most === 10 && new Set(under).size < under.length) wrong.push(`under way: ${under}`);
        }
        while (open.size > 0) answer(0, true);
        await settle();
        expect(wrong).toEqual([]);
      },
    ),
  );
});
