import { parseList } from "structured-headers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { rateHeaders } from "./rate-headers.ts";
import { rateLimitProblems } from "./rate-limit.ts";
import { withOutages } from "./rate-outage.ts";
import { addressOf, partitionOf } from "./rate-partition.ts";
import { secondsUntil, windowStart } from "./rate-window.ts";

describe("the options of a limit", () => {
  const problemsOf = (given: unknown) =>
    rateLimitProblems("rateLimit", given).map(
      ({ key, rule, message, fix }) => `${key}: ${rule}: ${message}; ${fix}`,
    );
  const sound = { per: "tenant", requests: 100, window: "minute" };

  test.each([
    undefined,
    null,
    [],
    sound,
    [sound, { ...sound, per: "ip" }],
    { ...sound, per: () => "a", name: "burst", onFailure: "shut" },
    { ...sound, requests: { id: "a:config:b", definition: { type: "number" } } },
  ])("may be %j", (given) => {
    expect(problemsOf(given)).toEqual([]);
  });

  test.each<[unknown, string]>([
    ["tenant", "rateLimit: option-type: it is not an object; pass an object"],
    [[null], "rateLimit: option-type: it is not an object; pass an object"],
    [
      { ...sound, per: "team" },
      'rateLimit.per: option-type: "team" is not allowed; use "tenant", "user", "ip", "all" or a function',
    ],
    [
      { ...sound, requests: 0 },
      "rateLimit.requests: option-type: 0 is not allowed; use a whole number from 1 to 999,999,999,999,999, or the handle of a number key",
    ],
    [
      { ...sound, requests: { definition: { type: "text" } } },
      "rateLimit.requests: option-type: a value of type object is not allowed; use a whole number from 1 to 999,999,999,999,999, or the handle of a number key",
    ],
    [
      { ...sound, window: "week" },
      'rateLimit.window: option-type: "week" is not allowed; use "second", "minute", "hour" or "day"',
    ],
    [
      { ...sound, name: "A" },
      'rateLimit.name: option-type: "A" is not allowed; use a name in kebab case',
    ],
    [
      { ...sound, onFailure: "ajar" },
      'rateLimit.onFailure: option-type: "ajar" is not allowed; use open or shut',
    ],
    [
      { per: "tenant", requests: 1 },
      'rateLimit.window: option-missing: it is not there; use "second", "minute", "hour" or "day"',
    ],
    ...[["tenant"], Object.create(null)].map((per): [unknown, string] => [
      { ...sound, per },
      'rateLimit.per: option-type: a value of type object is not allowed; use "tenant", "user", "ip", "all" or a function',
    ]),
  ])("may not be %j", (given, problem) => {
    expect(problemsOf(given)).toEqual([problem]);
  });

  test("do not have unknown names", () => {
    expect(problemsOf({ ...sound, limit: 3 })).toEqual([
      expect.stringContaining('rateLimit.limit: unknown-option: unknown option "limit"'),
    ]);
  });
});

describe("callers that share a number", () => {
  const ann = { user: { id: "ann", tenantId: "acme" }, ip: "192.0.2.1" };
  const key = { user: { id: undefined, tenantId: "acme" }, ip: "192.0.2.1" };
  const message = { user: { id: undefined, tenantId: "acme" }, ip: undefined };
  const system = { user: { id: undefined, tenantId: undefined }, ip: undefined };
  const nobody = { user: { id: undefined, tenantId: undefined }, ip: "192.0.2.1" };

  test.each([
    ["all", ann, { text: "all" }],
    ["tenant", ann, { text: "tenant acme", tenantId: "acme" }],
    ["user", ann, { text: 'user "acme" ann', tenantId: "acme" }],
    ["ip", ann, { text: "ip 192.0.2.1" }],
    ["tenant", nobody, { text: "ip 192.0.2.1", tenantId: undefined }],
    ["user", nobody, { text: "ip 192.0.2.1", tenantId: undefined }],
    ["user", key, { text: "ip 192.0.2.1", tenantId: "acme" }],
    ["user", message, { text: 'user "acme" ', tenantId: "acme" }],
    ["user", system, { text: "ip unknown", tenantId: undefined }],
    ["own", ann, { text: 'own "acme" x', tenantId: "acme" }],
    ["own", nobody, { text: "own - x", tenantId: undefined }],
  ] as const)("with %s", (per, caller, partition) => {
    expect(partitionOf(per, caller, "x")).toEqual(partition);
  });

  test("have bounded names, and different long names stay apart", () => {
    const texts = ["a", "b"].map((end) => partitionOf("own", ann, "x".repeat(600) + end).text);
    expect(texts[0]).toMatch(/^sha256 [\w-]{43}$/);
    expect(texts[1]).not.toBe(texts[0]);
    expect(partitionOf("own", ann).text).toBe('own "acme" ');
  });

  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["::1", "::/64"],
    ["nowhere", "unknown"],
    [undefined, "unknown"],
  ])("have the address %s as %s", (ip, address) => {
    expect(addressOf(ip)).toBe(address);
  });
});

describe("the header fields", () => {
  const fieldsOf = (text: string) =>
    parseList(text).map(([item, parameters]) => [item, Object.fromEntries(parameters)]);

  test("are lists of names with parameters, as the draft's examples", () => {
    const burst = { name: "burst", number: 100, windowMs: 60_000, remaining: 50 };
    const fields = rateHeaders(
      [
        { ...burst, resetMs: 29_001 },
        { name: "daily", number: 1_000, windowMs: 86_400_000, remaining: 0, resetMs: 86_400_000 },
      ],
      0,
    );
    const examples = {
      "ratelimit-policy": '"burst";q=100;w=60,"daily";q=1000;w=86400',
      ratelimit: '"burst";r=50;t=30, "daily";r=0;t=86400',
    };
    for (const name of ["ratelimit-policy", "ratelimit"] as const)
      expect(fieldsOf(fields[name])).toEqual(fieldsOf(examples[name]));
  });
});

test("windows are aligned in UTC, and no client returns before one ends", () => {
  expect(new Date(windowStart(86_400_000, Date.UTC(2026, 10, 28, 23, 59))).toISOString()).toBe(
    "2026-11-28T00:00:00.000Z",
  );
  expect([secondsUntil(1_001, 0), secondsUntil(1_000, 0), secondsUntil(0, 5)]).toEqual([2, 1, 1]);
});

describe("a store that fails", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });
  const row = { limit: { id: "x", window: "minute" }, text: "all", startMs: 0 } as const;

  test("gets no call for a second", async () => {
    const clock = { nowMs: 10_000, now: () => clock.nowMs };
    let calls = 0;
    const down = new Error("down");
    const store = withOutages(
      {
        take: async () => {
          calls += 1;
          if (calls <= 2) throw down;
          return 7;
        },
      },
      clock,
    );
    const take = () => store.take(row, 1, 1);
    await expect(take()).rejects.toBe(down);
    await expect(take()).rejects.toBe(down);
    expect(calls).toBe(1);
    clock.nowMs += 1_000;
    await expect(take()).rejects.toBe(down);
    expect(calls).toBe(2);
    clock.nowMs -= 5_000; // the clock was set back
    expect([await take(), await take()]).toEqual([7, 7]);
  });

  test("is not waited for longer than two seconds", async () => {
    const timeout = vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void) => {
      queueMicrotask(run);
      return undefined;
    }) as never); // safe: only the callback is used
    const store = withOutages({ take: () => new Promise(() => {}) }, { now: () => 0 });
    await expect(store.take(row, 1, 1)).rejects.toThrow("has not answered within 2000 ms");
    expect(timeout).toHaveBeenCalledWith(expect.any(Function), 2_000);
  });
});
