import { type OptionTable, whole } from "../../../base/errors/option-table.ts";

/** Age and size limits of the in-memory cache of configuration rows (`cache` of `buildServer`). */
export interface CacheOptions {
  /**
   * Age up to which cached rows are used without a call to the store, in milliseconds. Default
   * 5,000. With 0, every read calls the store.
   */
  readonly ttlMs?: number;
  /**
   * Age up to which cached rows are used while a background refresh runs, in milliseconds. Default 30,000,
   * or `ttlMs` if longer, or 0 if `ttlMs` is 0. In Lambda always `ttlMs`, because a frozen process cannot
   * refresh.
   */
  readonly maxStaleMs?: number;
  /**
   * Maximum number of tenants whose rows are cached; the limit for users is four times as high. The
   * least recently used are evicted first. Default 2,000.
   */
  readonly maxTenants?: number;
}

export function cacheSettings(
  { ttlMs = 5_000, maxStaleMs = defaultStaleMs(ttlMs), maxTenants = 2_000 }: CacheOptions = {},
  isFrozenBetweenEvents: boolean,
): Required<CacheOptions> {
  return { ttlMs, maxStaleMs: isFrozenBetweenEvents ? ttlMs : maxStaleMs, maxTenants };
}

/** Stale rows would be returned without waiting for the call that `ttlMs: 0` asks for. */
function defaultStaleMs(ttlMs: number): number {
  return ttlMs === 0 ? 0 : Math.max(30_000, ttlMs);
}

/** @param options - the given options, which may be of any type. */
export function cacheChecks(options: unknown): OptionTable {
  const most = Number.MAX_SAFE_INTEGER;
  const milliseconds = "a whole number of milliseconds";
  const isTtl = whole(0, most, `${milliseconds}, 0 or more`);
  const { ttlMs: given = 5_000 } = Object(options) as CacheOptions; // safe: the value is checked below
  const ttlMs = isTtl(given) === undefined ? given : 5_000;
  return {
    ttlMs: isTtl,
    maxStaleMs: whole(ttlMs, most, `${milliseconds}, not below ttlMs, which is ${ttlMs}`),
    maxTenants: whole(1, most, "a whole number, 1 or more"),
  };
}
