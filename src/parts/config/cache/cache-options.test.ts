import { describe, expect, test } from "vitest";
import { cacheChecks, cacheSettings } from "./cache-options.ts";

describe("the cache settings", () => {
  test("default to 5 s, 30 s and 2,000 tenants", () => {
    expect(cacheSettings(undefined, false)).toEqual({
      ttlMs: 5_000,
      maxStaleMs: 30_000,
      maxTenants: 2_000,
    });
    expect(cacheSettings({ ttlMs: 60_000 }, false)).toEqual({
      ttlMs: 60_000,
      maxStaleMs: 60_000,
      maxTenants: 2_000,
    });
    expect(cacheSettings({ ttlMs: 0 }, false)).toMatchObject({ ttlMs: 0, maxStaleMs: 0 });
    const given = { ttlMs: 1, maxStaleMs: 2, maxTenants: 3 };
    expect(cacheSettings(given, false)).toEqual(given);
  });

  test("allow no stale rows in a process that is frozen between events", () => {
    expect(cacheSettings({ maxStaleMs: 60_000 }, true)).toMatchObject({
      ttlMs: 5_000,
      maxStaleMs: 5_000,
    });
  });

  test.each([
    [{ ttlMs: 0, maxStaleMs: 0, maxTenants: 1 }, []],
    [{ ttlMs: -1, maxStaleMs: 5_000 }, ["ttlMs"]],
    [{ ttlMs: 1.5, maxTenants: 0 }, ["ttlMs", "maxTenants"]],
    [{ ttlMs: "5s", maxStaleMs: 4_999 }, ["ttlMs", "maxStaleMs"]],
    [{ ttlMs: 6_000, maxStaleMs: 5_999 }, ["maxStaleMs"]],
  ])("given as %o are refused for %o", (options, refused) => {
    const checks = cacheChecks(options);
    const wrong = Object.entries(options).filter(
      ([name, value]) => checks[name]?.(value) !== undefined,
    );
    expect(wrong.map(([name]) => name)).toEqual(refused);
  });

  test("given as null have checks as well", () => {
    expect(cacheChecks(null)["ttlMs"]?.(0)).toBeUndefined();
  });
});
