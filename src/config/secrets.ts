import type { Clock } from "../context/clock.ts";
import { FrameworkError, PipelineError } from "../errors/errors.ts";
import type { KeyRing } from "./key-ring.ts";
import { openText, type Place, type Sealed, sealText } from "./sealed.ts";

/** Seals and opens with a key ring that changes while the process runs. */
export interface Secrets {
  /** Starts with a ring that was read a moment ago; `undefined` where there is none. */
  begin(ring: KeyRing | undefined): void;
  /**
   * The name of the key that seals, from a ring that is at most 10 s old: what is sealed with a key
   * that somebody has retired could not be opened for long.
   *
   * @throws PipelineError 501 `no_key_ring` where there is none; FrameworkError `config_unavailable`
   * where the ring cannot be read.
   */
  active(): Promise<string>;
  /** @throws as {@link Secrets.active}. */
  seal(text: string, place: Place): Promise<Sealed>;
  /** What a sealed value holds, or why it does not open with the ring that is known. */
  open(sealed: Sealed, place: Place): { readonly text: string } | { readonly locked: string };
  /**
   * Reads the ring again where it has not one of the keys that are named, at most every 10 s;
   * `undefined` where there is nothing to wait for. Never fails: `open` tells what is still locked.
   */
  prepare(keys: readonly string[]): Promise<void> | undefined;
}

/** What a process's secrets are made of. */
export interface SecretsOptions {
  /** Reads the ring; absent where it cannot change. */
  readonly load?: (() => Promise<KeyRing>) | undefined;
  readonly clock: Clock;
}

/** How old a ring may be for sealing, and how often it is read for a key that it has not. */
const reloadMs = 10_000;

/** Creates the {@link Secrets} of one runtime. */
export function createSecrets({ load, clock }: SecretsOptions): Secrets {
  let ring: KeyRing | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;
  let failure: unknown;

  const isDue = () => {
    const nowMs = clock.now();
    return load !== undefined && (nowMs - askedMs >= reloadMs || nowMs < askedMs);
  };

  /** One reading for all who ask meanwhile; a failure leaves the ring that is known. */
  const reload = (): Promise<void> => {
    loading ??= (async () => {
      askedMs = clock.now();
      failure = undefined;
      try {
        ring = await load?.();
      } catch (error) {
        failure = error;
      } finally {
        loading = undefined;
      }
    })();
    return loading;
  };

  const current = async (): Promise<KeyRing> => {
    if (ring === undefined) {
      throw new PipelineError("The value of an encrypted key cannot be stored: no key ring is configured", 501, {
        code: "no_key_ring",
      });
    }
    if (loading !== undefined || isDue()) await reload();
    if (failure !== undefined) {
      throw new FrameworkError("config_unavailable", "The key ring cannot be read at the moment", { cause: failure });
    }
    return ring;
  };

  return {
    begin: (given) => {
      ring = given;
      askedMs = clock.now();
    },
    active: async () => (await current()).active,
    seal: async (text, place) => {
      const { active, keys } = await current();
      // Safe: a ring has its active key.
      return sealText(text, place, { name: active, secret: keys.get(active) as NonNullable<ReturnType<typeof keys.get>> });
    },
    open: (sealed, place) => {
      const secret = ring?.keys.get(sealed.key);
      if (secret === undefined) return { locked: ring === undefined ? "there is no key ring" : missing(sealed.key) };
      try {
        return { text: openText(sealed, place, secret) };
      } catch {
        return { locked: `it was not sealed for this row with the key ${shown(sealed.key)}` };
      }
    },
    prepare: (names) => {
      if (ring === undefined || names.every((name) => ring?.keys.has(name))) return undefined;
      return loading ?? (isDue() ? reload() : undefined);
    },
  };
}

function missing(key: string): string {
  return `the key ring has no key ${shown(key)}`;
}

/** A name as it is stored, which anybody may have written. */
function shown(key: string): string {
  return JSON.stringify(key.slice(0, 64));
}
