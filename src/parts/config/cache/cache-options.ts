/** How long configuration rows are kept in memory, and how many (`cache` of `buildServer`). */
export interface CacheOptions {
  /** Younger rows are served without a call, in milliseconds. Default 5,000; 0 asks the store at each read. */
  readonly ttlMs?: number;
  /**
   * Younger rows are served while they are refreshed in the background, in milliseconds. Default 30,000,
   * or `ttlMs` where that is more. In Lambda always `ttlMs`: a frozen process refreshes nothing.
   */
  readonly maxStaleMs?: number;
  /** The rows of so many tenants are kept, and of four times as many users; the least recently used go first. Default 2,000. */
  readonly maxTenants?: number;
}

/** Fills in the defaults. The options have passed {@link cacheChecks}. */
export function cacheSettings(
  { ttlMs = 5_000, maxStaleMs = Math.max(30_000, ttlMs), maxTenants = 2_000 }: CacheOptions = {},
  isFrozenBetweenEvents: boolean,
): Required<CacheOptions> {
  return { ttlMs, maxStaleMs: isFrozenBetweenEvents ? ttlMs : maxStaleMs, maxTenants };
}

/** Says of each option what it should be, where it is something else. */
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
