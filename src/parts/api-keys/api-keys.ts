import type { Clock } from "../../base/process/clock.ts";
import { inTime } from "../../base/process/in-time.ts";
import { Recent } from "../../base/process/recent.ts";
import { SharedReads } from "../../base/process/shared-reads.ts";
import type { ApiKeyStore, SecretOwner } from "./api-key.ts";
import { hashOfSecret, isWellFormed } from "./secret.ts";

export type ApiKeys = ReturnType<typeof createApiKeys>;

interface ApiKeysOptions {
  readonly store: () => Promise<ApiKeyStore>;
  readonly clock: Clock;
  /** Called if the time of a use cannot be written. The request goes on. */
  readonly onLostUse: (error: unknown) => void;
}

/** Age at which a known secret is read again, so that a revocation elsewhere applies in time. */
const knownMs = 5_000;
const unknownMs = 60_000;
/** Half of the hour that `lastUsedAt` may be late: another process's note may be as old as ours. */
const useMs = 1_800_000;
const [maxKnown, maxUnknown] = [2_000, 10_000];

/**
 * Verifies API keys with the secrets that this process has read. A wrong checksum costs no read, an
 * unknown secret one a minute, a known one at most one every five seconds.
 */
export function createApiKeys({ store, clock, onLostUse }: ApiKeysOptions) {
  const known = new Recent<SecretOwner>(maxKnown, knownMs);
  const unknown = new Recent<true>(maxUnknown, unknownMs);
  const uses = new Recent<true>(maxKnown, useMs);
  const reads = new SharedReads<SecretOwner | undefined>();

  const read = async (
    hash: string,
    askedMs: number,
    isCurrent: () => boolean,
  ): Promise<SecretOwner | undefined> => {
    const owner = await inTime((await store()).find(hash));
    if (!isCurrent()) return owner;
    if (owner === undefined) unknown.set(hash, true, askedMs);
    else known.set(hash, owner, askedMs);
    return owner;
  };
  const joined = (hash: string, nowMs: number): Promise<SecretOwner | undefined> =>
    reads.join(hash, nowMs, (isCurrent) => read(hash, nowMs, isCurrent));
  /** A secret that has ended never becomes valid again, so it costs no more reads. */
  const valid = (hash: string, owner: SecretOwner | undefined): SecretOwner | undefined => {
    const nowMs = clock.now();
    if (owner?.endsMs === undefined || nowMs < owner.endsMs) return owner;
    known.delete(hash);
    unknown.set(hash, true, nowMs);
    return undefined;
  };
  const noteUse = async (owner: SecretOwner): Promise<void> => {
    const nowMs = clock.now();
    if (uses.get(owner.id, nowMs) !== undefined) return;
    uses.set(owner.id, true, nowMs);
    try {
      await inTime((await store()).noteUse(owner, nowMs, nowMs - useMs));
    } catch (error) {
      onLostUse(error);
    }
  };
  const atHand = (text: string): SecretOwner | undefined => {
    if (!isWellFormed(text)) return undefined;
    const hash = hashOfSecret(text);
    return valid(hash, known.get(hash, clock.now()));
  };

  return {
    /** Resolves to `undefined` for any invalid key. @throws any error of the store. */
    async verify(text: string): Promise<SecretOwner | undefined> {
      if (!isWellFormed(text)) return undefined;
      const hash = hashOfSecret(text);
      const nowMs = clock.now();
      if (unknown.get(hash, nowMs) !== undefined) return undefined;
      const owner = valid(hash, known.get(hash, nowMs) ?? (await joined(hash, nowMs)));
      if (owner !== undefined) await noteUse(owner);
      return owner;
    },
    /** Like `verify`, for a key that this process has just read. */
    atHand,
    /** Forgets the secrets of a key that this process has changed. */
    forget(id: string): void {
      reads.forget(); // they may have found the key before the change
      known.deleteWhere((owner) => owner.id === id);
    },
  };
}
