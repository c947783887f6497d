import type { CommitItem } from "../../base/types/database.ts";

/** Starts of the partitions of secrets, by their hash, and of keys, by their tenant. */
export const [secretPartition, keyPartition] = ["api-key#", "api-keys#"] as const;

/** Maximum number of API keys of a tenant, with the expired ones. */
export const maxKeys = 1_000;

/** An API key as its tenant's list has it. Times are in milliseconds since the epoch. */
export interface ApiKey {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly createdMs: number;
  readonly expiresMs: number | undefined;
  readonly lastUsedMs: number | undefined;
  /** SHA-256 of the secret. */
  readonly hash: string;
  /** SHA-256 of the secret before the last rotation, which may still be valid. */
  readonly formerHash: string | undefined;
}

/** The key, tenant and roles that a secret gives access to. */
export interface SecretOwner extends Pick<ApiKey, "id" | "tenantId" | "roles"> {
  /** Time from which the secret is not valid, in milliseconds since the epoch. Default: never. */
  readonly endsMs: number | undefined;
}

export interface Rotation {
  readonly hash: string;
  /** Time from which the replaced secret is not valid, in milliseconds since the epoch. */
  readonly formerEndsMs: number;
  readonly nowMs: number;
}

/** Stored API keys. Items are for one transaction, and hold only for the key that was read. */
export interface ApiKeyStore {
  /** Finds a secret by its hash, with one read. */
  find(hash: string): Promise<SecretOwner | undefined>;
  /** Reads a key by its ID, which is unchecked text from a caller. */
  read(tenantId: string, id: string): Promise<ApiKey | undefined>;
  /** Reads all keys of a tenant, oldest first. */
  list(tenantId: string): Promise<readonly ApiKey[]>;
  /** Notes a use, if none was noted since `beforeMs` and the key exists. */
  noteUse(key: Pick<ApiKey, "id" | "tenantId">, nowMs: number, beforeMs: number): Promise<void>;
  /** The condition of the first item fails for a tenant that has {@link maxKeys}. */
  added(key: ApiKey): CommitItem[];
  rotated(key: ApiKey, rotation: Rotation): CommitItem[];
  removed(key: ApiKey): CommitItem[];
  /** Writes items without a run. @throws Error if the key has changed since it was read. */
  write(items: readonly CommitItem[]): Promise<void>;
}
