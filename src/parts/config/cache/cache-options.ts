/** Age and size limits of the in-memory cache of configuration rows (`cache` of `buildServer`). */
export interface CacheOptions {
  /**
   * Age up to which rows are served without a call, in milliseconds. Default 5,000. With 0, every
   * read asks the store.
   */
  readonly ttlMs?: number;
  /**
   * Age up to which rows are served while a background refresh runs, in milliseconds. Default
   * 30,000, or `ttlMs` if that is longer. In Lambda always `ttlMs`: a frozen process cannot
   * refresh.
   */
  readonly maxStaleMs?: number;
  /**
   * Tenants whose rows are cached, and four times as many users; the least recently used are
   * evicted first. Default 2,000.
   */
  readonly maxTenants?: number;
}

/** The options must have passed {@link cacheChecks}. */
export function cacheSettings(
  { ttlMs = 5_000, maxStaleMs = Math.max(30_000, ttlMs), maxTenants = 2_000 }: CacheOptions = {},
  isFrozenBetweenEvents: boolean,
): Required<CacheOptions> {
  return { ttlMs, maxStaleMs: isFrozenBetweenEvents ? ttlMs : maxStaleMs, maxTenants };
}

/** Each check returns the expected value if the given one is invalid. */
export function cacheChecks(
  options: CacheOptions | undefined,
): Readonly<Record<string, (value: unknown) => string | undefined>> {
  const given = options?.ttlMs;
  const ttlMs = isWhole(given, 0) ? given : 5_000;
  return {
    ttlMs: (value) => (isWhole(value, 0) ? undefined : "a whole number of milliseconds, 0 or more"),
    maxStaleMs: (value) =>
      isWhole(value, ttlMs)
        ? undefined
        : `a whole number of milliseconds, not below ttlMs, which is ${ttlMs}`,
    maxTenants: (value) => (isWhole(value, 1) ? undefined : "a whole number, 1 or more"),
  };
}

function isWhole(value: unknown, min: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= min;
}
