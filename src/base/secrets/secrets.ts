import type { KeyObject } from "node:crypto";
import { FrameworkError, PipelineError } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import type { KeyRing } from "./key-ring.ts";
import { openText, type Place, type Sealed, sealText } from "./sealed.ts";

export interface Secrets {
  /** Sets the first ring, or none. `askedMs` is when its read started. */
  begin(ring: KeyRing | undefined, askedMs: number): void;
  /**
   * Returns the active key's name, from a ring at most 10 s old, because values of a key that is
   * about to be removed would soon be unreadable.
   *
   * @throws PipelineError 501 `no_key_ring` without a ring; FrameworkError `config_unavailable` if
   * it cannot be read.
   */
  active(): Promise<string>;
  refresh(): Promise<void>;
  /** @throws The errors of {@link Secrets.active}, like `refresh`. */
  seal(text: string, place: Place): Promise<Sealed>;
  /**
   * Seals text that is not stored, such as a cursor, with the ring that `recent` returns.
   *
   * @throws PipelineError 501 `no_key_ring` without a ring.
   */
  sealPassing(text: string, place: Place): Promise<Sealed>;
  open(sealed: Sealed, place: Place): { readonly text: string } | { readonly locked: string };
  /**
   * Reads the ring again for an unknown key, at most every 10 s, and waits up to 2 s. Never fails:
   * `open` reports missing keys.
   */
  prepare(key: string): Promise<void> | undefined;
  /**
   * Returns the ring for messages. Reads it again if it is older than five minutes or lacks the key
   * `name`, at most every 10 s, and waits up to 2 s. If the read fails, the ring stays.
   */
  recent(name?: string): Promise<RecentRing>;
  mayHaveRing(): boolean;
}

export interface RecentRing {
  readonly ring: KeyRing | undefined;
  /** Whether an unknown key may be new, because the latest read failed or still runs. */
  readonly isStale: boolean;
}

interface SecretsOptions {
  /** Reads the ring; absent if the ring cannot change. */
  readonly load?: (() => Promise<KeyRing>) | undefined;
  readonly clock: Clock;
  readonly onFailure?: (error: unknown) => void;
}

/** Maximum age of a ring that encrypts, and minimum time between reads for an unknown key. */
const reloadMs = 10_000;
/** Time before a write repeats a failed read. */
const retryMs = 1_000;
/** Maximum age of a ring for messages and cursors: operators wait as long to remove a key. */
const recentMs = 300_000;
const patienceMs = 2_000;

export function createSecrets({ load, clock, onFailure }: SecretsOptions): Secrets {
  let ring: KeyRing | undefined;
  /** All keys ever seen, because cached values may need a removed key. */
  const known = new Map<string, KeyObject>();
  let askedMs = -Infinity;
  let endedMs = -Infinity;
  let loading: Promise<void> | undefined;
  let failure: { readonly error: unknown } | undefined;

  const isOver = (sinceMs: number, ms: number) => {
    const nowMs = clock.now();
    return nowMs - sinceMs >= ms || nowMs < sinceMs;
  };

  const take = (given: KeyRing | undefined, atMs: number) => {
    ring = given;
    askedMs = atMs;
    for (const [name, key] of given?.keys ?? []) known.set(name, key);
  };

  const reload = (): Promise<void> => {
    loading ??= (async () => {
      const startMs = clock.now();
      try {
        take(await load?.(), startMs);
        failure = undefined;
      } catch (error) {
        failure = { error };
        onFailure?.(error);
      } finally {
        endedMs = clock.now();
        loading = undefined;
      }
    })();
    return loading;
  };

  const current = async (): Promise<KeyRing> => {
    if (ring === undefined) throw noKeyRing();
    if (load === undefined) return ring;
    if (
      loading !== undefined ||
      (failure === undefined ? isOver(askedMs, reloadMs) : isOver(endedMs, retryMs))
    )
      await reload();
    if (failure !== undefined) throw unreadable(failure.error);
    return ring;
  };

  const recent = async (name?: string): Promise<RecentRing> => {
    const isUnknown =
      name !== undefined && ring?.keys.has(name) !== true && ring?.retired?.has(name) !== true;
    if (ring !== undefined && load !== undefined && (isUnknown || isOver(askedMs, recentMs))) {
      // A read in progress is awaited only for an unknown key.
      if (loading === undefined ? isOver(endedMs, reloadMs) : isUnknown)
        await withPatience(reload());
    }
    return { ring, isStale: failure !== undefined || loading !== undefined };
  };

  return {
    begin: (given, atMs) => {
      take(given, atMs);
      endedMs = atMs;
    },
    active: async () => (await current()).active,
    refresh: async () => {
      if (load !== undefined) await reload();
      await current();
    },
    seal: async (text, place) => sealWith(await current(), text, place),
    sealPassing: async (text, place) => sealWith((await recent()).ring, text, place),
    open: (sealed, place) => {
      const secret = known.get(sealed.key);
      if (secret === undefined) {
        if (ring === undefined) return { locked: "there is no key ring" };
        const again = failure === undefined ? "" : ", and could not be read again";
        return { locked: `the key ring has no key ${shown(sealed.key)}${again}` };
      }
      try {
        return { text: openText(sealed, place, secret) };
      } catch {
        return { locked: `it was not sealed for this row with the key ${shown(sealed.key)}` };
      }
    },
    prepare: (name) => {
      if (ring === undefined || load === undefined || known.has(name)) return undefined;
      if (loading === undefined && !isOver(endedMs, reloadMs)) return undefined;
      return withPatience(reload());
    },
    recent,
    mayHaveRing: () => ring !== undefined || load !== undefined,
  };
}

function sealWith(ring: KeyRing | undefined, text: string, place: Place): Sealed {
  if (ring === undefined) throw noKeyRing();
  const { active, keys } = ring;
  return sealText(text, place, { name: active, secret: keys.get(active) as KeyObject }); // safe: a ring contains its active key
}

function noKeyRing(): PipelineError {
  const message = "The value of an encrypted key cannot be stored: no key ring is configured";
  return new PipelineError(message, 501, { code: "no_key_ring" });
}

function unreadable(cause: unknown): FrameworkError {
  return new FrameworkError("config_unavailable", "The key ring cannot be read at the moment", {
    cause,
    headers: { "retry-after": String(retryMs / 1_000) },
  });
}

async function withPatience(work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, patienceMs);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}

/** An untrusted writer may have stored the key's name. */
function shown(key: string): string {
  return JSON.stringify(key.slice(0, 64));
}
