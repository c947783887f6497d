import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import type { Clock } from "../process/clock.ts";

/** How a key set is fetched and how long it is believed. */
export interface RemoteKeyLimits {
  /** How long one fetch may take. Default 2,000 ms. */
  readonly timeoutMs: number;
  /** How large the key set may be. Default 256 KiB. */
  readonly maxBytes: number;
  /** The age at which it is fetched anew. Default 10 minutes. */
  readonly maxAgeMs: number;
  /** The age up to which it serves while the endpoint is down. Default 1 hour. */
  readonly maxStaleMs: number;
  /** The least time from a good fetch to one that an unknown key asks for. Default 10 s. */
  readonly cooldownMs: number;
  /** The least time from a failed fetch to the next. Default 2 s. */
  readonly retryMs: number;
}

/** Finds the keys of tokens. */
export interface RemoteKeys {
  readonly find: JWTVerifyGetKey;
  /** Among those that were fetched for other tokens; fetches nothing. */
  readonly findAtHand: JWTVerifyGetKey;
}

/** The endpoint of the key set cannot be reached, so nothing can be said about a token. */
export class KeysUnavailableError extends Error {
  constructor(url: URL, cause: unknown) {
    super(
      `the key set at ${url.href} cannot be had; check auth.jwks and that the endpoint answers`,
      { cause },
    );
    this.name = "KeysUnavailableError";
  }
}

const defaults: RemoteKeyLimits = Object.freeze({
  timeoutMs: 2_000,
  maxBytes: 256 * 1024,
  maxAgeMs: 600_000,
  maxStaleMs: 3_600_000,
  cooldownMs: 10_000,
  retryMs: 2_000,
});

/**
 * Finds the key of a token in a remote key set. It differs from jose's own in three ways: an outage
 * does not take the known keys away, tokens cannot cause more fetches than `cooldownMs` and
 * `retryMs` allow even while the endpoint is down, and time is `clock`'s.
 *
 * | known keys | token's key | endpoint | outcome |
 * |---|---|---|---|
 * | younger than `maxAgeMs` | among them | not asked | the key |
 * | younger than `maxStaleMs` | among them | down | the key |
 * | any | not among them | answers, or asked just now | jose's `JWKSNoMatchingKey` |
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
    if (known === undefined || clock.now() - known.fetchedAt >= maxAgeMs) await refresh();
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

  function current(): JWTVerifyGetKey {
    if (known === undefined || clock.now() - known.fetchedAt >= maxStaleMs)
      throw new KeysUnavailableError(url, failure?.cause);
    return known.find;
  }

  /** One fetch at a time, and none too soon; a failure is remembered, not thrown. */
  async function refresh(): Promise<void> {
    const allowedAt =
      failure === undefined ? (known?.fetchedAt ?? -Infinity) + cooldownMs : failure.at + retryMs;
    if (flight === undefined && clock.now() < allowedAt) return;
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
  const response = await fetch(url, {
    headers,
    redirect: "manual",
    signal: AbortSignal.timeout(timeoutMs),
  });
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
  // Not believed as it is: createLocalJWKSet checks the shape and throws where it is another.
  return JSON.parse(text + decoder.decode()) as JSONWebKeySet;
}
