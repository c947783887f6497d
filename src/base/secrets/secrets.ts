import type { KeyObject } from "node:crypto";
import { FrameworkError, PipelineError } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import type { KeyRing } from "./key-ring.ts";
import { openText, type Place, type Sealed, sealText } from "./sealed.ts";

/** Seals and opens with a key ring that changes while the process runs. */
export interface Secrets {
  /** Starts with a ring that was asked for at `askedMs`; `undefined` where there is none. */
  begin(ring: KeyRing | undefined, askedMs: number): void;
  /**
   * The name of the key that seals, from a ring that is at most 10 s old: what is sealed with a key
   * that somebody has retired could not be opened for long.
   *
   * @throws PipelineError 501 `no_key_ring` where there is none; FrameworkError `config_unavailable`
   * where the ring cannot be read.
   */
  active(): Promise<string>;
  /** Reads the ring again, however young it is. @throws as {@link Secrets.active}. */
  refresh(): Promise<void>;
  /** @throws as {@link Secrets.active}. */
  seal(text: string, place: Place): Promise<Sealed>;
  /** What a sealed value holds, or why it does not open with the keys that are known. */
  open(sealed: Sealed, place: Place): { readonly text: string } | { readonly locked: string };
  /**
   * Reads the ring again where it has not the key, at most every 10 s; `undefined` where there is nothing
   * to wait for. Waits 2 s at most, and never fails: `open` tells what is still locked.
   */
  prepare(key: string): Promise<void> | undefined;
  /**
   * The ring, for what is done often and with any key that it has: read again where it is older than five minutes, or has not
   * the key `name`, at most every 10 s. Waits 2 s at most, and never fails: a ring that cannot be read stays as it was.
   */
  recent(name?: string): Promise<RecentRing>;
  /** Whether there is a ring, or may be one by the time that it is read again. */
  mayHaveRing(): boolean;
}

/** The ring as it is known. */
export interface RecentRing {
  /** `undefined` where there is none. */
  readonly ring: KeyRing | undefined;
  /** Whether it could not be read again: a key that it has not may be one that was added since. */
  readonly isStale: boolean;
}

/** What a process's secrets are made of. */
export interface SecretsOptions {
  /** Reads the ring; absent where it cannot change. */
  readonly load?: (() => Promise<KeyRing>) | undefined;
  readonly clock: Clock;
  /** Told where the ring could not be read. */
  readonly onFailure?: (error: unknown) => void;
}

/** How old a ring may be for sealing, and how long it is not read again for a key that it has not. */
const reloadMs = 10_000;
/** After how long a write tries again where the ring could not be read. */
const retryMs = 1_000;
/** How old a ring may be for messages: less than the five minutes that have to be between activating a key and removing another. */
const recentMs = 300_000;
/** How long a read waits for the ring. */
const patienceMs = 2_000;

/** Creates the {@link Secrets} of one runtime. */
export function createSecrets({ load, clock, onFailure }: SecretsOptions): Secrets {
  let ring: KeyRing | undefined;
  /** All that were ever in the ring: what is cached, or read by somebody just now, may need one that was removed. */
  const known = new Map<string, KeyObject>();
  let askedMs = Number.NEGATIVE_INFINITY;
  let endedMs = Number.NEGATIVE_INFINITY;
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

  /** One reading for all who ask meanwhile; a failure leaves the ring that is known. */
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
    if (ring === undefined) {
      throw new PipelineError(
        "The value of an encrypted key cannot be stored: no key ring is configured",
        501,
        {
          code: "no_key_ring",
        },
      );
    }
    if (load === undefined) return ring;
    if (
      loading !== undefined ||
      (failure === undefined ? isOver(askedMs, reloadMs) : isOver(endedMs, retryMs))
    )
      await reload();
    if (failure !== undefined) {
      throw new FrameworkError("config_unavailable", "The key ring cannot be read at the moment", {
        cause: failure.error,
        headers: { "retry-after": String(retryMs / 1_000) },
      });
    }
    return ring;
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
    seal: async (text, place) => {
      const { active, keys } = await current();
      return sealText(text, place, { name: active, secret: keys.get(active) as KeyObject }); // safe: a ring has its active key
    },
    open: (sealed, place) => {
      const secret = known.get(sealed.key);
      if (secret === undefined)
        return {
          locked: ring === undefined ? "there is no key ring" : missing(sealed.key, failure),
        };
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
    recent: async (name) => {
      const isUnknown =
        name !== undefined && ring?.keys.has(name) !== true && ring?.retired?.has(name) !== true;
      if (ring !== undefined && load !== undefined && (isUnknown || isOver(askedMs, recentMs))) {
        // A caller whose key is known does not wait for a read in flight.
        if (loading === undefined ? isOver(endedMs, reloadMs) : isUnknown)
          await withPatience(reload());
      }
      return { ring, isStale: failure !== undefined || loading !== undefined };
    },
    mayHaveRing: () => ring !== undefined || load !== undefined,
  };
}

async function withPatience(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, patienceMs);
  });
  await Promise.race([work, patience]);
  clearTimeout(timer);
}

function missing(key: string, failure: object | undefined): string {
  const again = failure === undefined ? "" : ", and could not be read again";
  return `the key ring has no key ${shown(key)}${again}`;
}

/** A name as it is stored, which anybody may have written. */
function shown(key: string): string {
  return JSON.stringify(key.slice(0, 64));
}
