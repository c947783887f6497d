import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import type { Clock } from "../process/clock.ts";

export type RemoteKeyLimits = Readonly<Record<keyof typeof defaults, number>>;

export interface RemoteKeys {
  readonly find: JWTVerifyGetKey;
  /** Never fetches. */
  readonly findAtHand: JWTVerifyGetKey;
}

/** Thrown if a token can be neither accepted nor rejected. */
export class KeysUnavailableError extends Error {
  constructor(url: URL, cause: unknown) {
    const message = `the key set at ${url.href} cannot be fetched; check auth.jwks and that the endpoint responds`;
    super(message, { cause });
    this.name = "KeysUnavailableError";
  }
}

const defaults = Object.freeze({
  timeoutMs: 2_000,
  maxBytes: 256 * 1024,
  /** Age after which the key set is fetched again. */
  maxAgeMs: 600_000,
  /** Maximum age of a key set that is used while the endpoint is down. */
  maxStaleMs: 3_600_000,
  /** Minimum time from a successful fetch to a fetch for an unknown key. */
  cooldownMs: 10_000,
  /** Minimum time from a failed fetch to the next fetch. */
  retryMs: 2_000,
});

/**
 * Finds keys in a remote key set. Unlike in jose's, known keys survive an outage, and tokens cannot
 * cause more fetches than `cooldownMs` and `retryMs` allow.
 *
 * | known keys | token's key | endpoint | outcome |
 * |---|---|---|---|
 * | younger than `maxAgeMs` | among them | not called | the key |
 * | younger than `maxStaleMs` | among them | down | the key |
 * | any | not among them | answers, or just called | jose's `JWKSNoMatchingKey` |
 * | any | not among them | down | `KeysUnavailableError` |
 * | none, or older | any | down | `KeysUnavailableError` |
 */
export function createRemoteKeys(
  jose: typeof import("jose"),
  url: URL,
  clock: Clock,
  limits: Partial<RemoteKeyLimits> = {},
): RemoteKeys {
  const { timeoutMs, maxBytes, maxAgeMs, maxStaleMs, cooldownMs, retryMs } = {
    ...defaults,
    ...limits,
  };
  let known: { readonly find: JWTVerifyGetKey; readonly fetchedAt: number } | undefined;
  let failure: { readonly cause: unknown; readonly at: number } | undefined;
  let flight: Promise<void> | undefined;

  const find: JWTVerifyGetKey = async (header, token) => {
    if (known === undefined || ageOf(known.fetchedAt) >= maxAgeMs) await refresh();
    try {
      return await current()(header, token);
    } catch (error) {
      if (!(error instanceof jose.errors.JWKSNoMatchingKey)) throw error;
      await refresh();
      if (failure !== undefined) throw new KeysUnavailableError(url, failure.cause);
      return current()(header, token);
    }
  };
  return { find, findAtHand: async (header, token) => current()(header, token) };

  /** Infinite after the clock was set back to before `atMs`, because the age is then unknown. */
  function ageOf(atMs: number): number {
    const ageMs = clock.now() - atMs;
    return ageMs < 0 ? Number.POSITIVE_INFINITY : ageMs;
  }

  /** Keys of an unknown age stay in use while the endpoint is down. */
  function current(): JWTVerifyGetKey {
    if (known === undefined || clock.now() - known.fetchedAt >= maxStaleMs)
      throw new KeysUnavailableError(url, failure?.cause);
    return known.find;
  }

  /** Fetches once for all concurrent callers, within the limits. Never throws. */
  async function refresh(): Promise<void> {
    const isTooSoon =
      failure === undefined
        ? known !== undefined && ageOf(known.fetchedAt) < cooldownMs
        : ageOf(failure.at) < retryMs;
    if (flight === undefined && isTooSoon) return;
    flight ??= load().finally(() => {
      flight = undefined;
    });
    await flight;
  }

  async function load(): Promise<void> {
    try {
      const find = jose.createLocalJWKSet(await fetchKeySet(url, timeoutMs, maxBytes));
      known = { find, fetchedAt: clock.now() };
      failure = undefined;
    } catch (cause) {
      failure = { cause, at: clock.now() };
    }
  }
}

async function fetchKeySet(url: URL, timeoutMs: number, maxBytes: number): Promise<JSONWebKeySet> {
  const headers = { accept: "application/json, application/jwk-set+json" };
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { headers, redirect: "manual", signal });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    throw new Error(`the endpoint answered with status ${response.status}, not with a key set`);
  }
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, bytes] = ["", 0];
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`the endpoint's answer is longer than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  // Safe cast: `createLocalJWKSet` checks the shape.
  return JSON.parse(text + decoder.decode()) as JSONWebKeySet;
}
