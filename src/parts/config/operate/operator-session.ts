import type { User } from "../../../base/identity/access.ts";
import type { Logger } from "../../../base/log/logger.ts";
import type { Sealed } from "../../../base/secrets/sealed.ts";
import type { CommitItem, Database } from "../../../base/types/database.ts";
import type { CachedRows } from "../cache/cached-rows.ts";
import { type ConfigSession, unavailable } from "../read/resolver.ts";
import type { SealedRow } from "../read/row-cipher.ts";
import type { ConfigRow, ConfigRowReader, RowAddress, RowLevel, RowOwner } from "../read/rows.ts";
import type { AuthorizedTarget, TargetKey } from "./target.ts";

/** Member of every `ctx.db` that opens sessions for operators. */
export const operatorSession: unique symbol = Symbol("keelson.operatorSession");

export interface OperatorSession extends ConfigSession {
  readonly store: ConfigStore;
  /** Serves this process's requests; report each write to it. */
  readonly cache: RowCache;
  override(id: string): unknown;
}

export type RowCache = Pick<CachedRows, "noteWrite" | "invalidate" | "ageMs">;

export interface OperatorDatabase {
  [operatorSession](owner: RowOwner): OperatorSession;
}

/** Members of a `ctx` that the configuration operations use. */
export interface OperatorContext {
  readonly db: Database;
  readonly user: User;
  readonly log: Logger;
}

/** @throws TypeError if `db` is not a `ctx.db`. */
export function openOperatorSession({ db }: OperatorContext, owner: RowOwner): OperatorSession {
  const session = (db as Partial<OperatorDatabase>)[operatorSession]?.(owner);
  if (session === undefined)
    throw new TypeError("ctx.db is not one of keelson's; pass the ctx of a handler or job");
  return session;
}

export function addressesOf({ id }: TargetKey, levels: readonly RowLevel[]): RowAddress[] {
  return levels.map(({ partition }) => ({ partition, key: id }));
}

export function readStored(
  { store }: OperatorSession,
  addresses: readonly RowAddress[],
): Promise<readonly (ConfigRow | undefined)[]> {
  return callStore("read", () => store.read(addresses));
}

/** @throws FrameworkError `config_unavailable` if the call fails. */
export async function callStore<Result>(
  what: "read" | "written",
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    return unavailable(error, what);
  }
}

/** Every access to another tenant or user must be traceable. */
export function logOtherTarget(
  { log }: OperatorContext,
  operation: string,
  key: string | undefined,
  { isOther, owner }: AuthorizedTarget,
): void {
  const { tenantId: targetTenantId, userId: targetUserId } = owner;
  if (isOther) log.info("config.other_target", { operation, key, targetTenantId, targetUserId });
}

/** Kind of write: by `setConfig`, `resetConfig` or `undoConfig`. */
export type WriteAction = "set" | "reset" | "undo";

export interface HistoryEntry extends ConfigRow {
  readonly action: WriteAction;
}

export interface RowWrite {
  readonly address: RowAddress;
  /** `undefined` for a row that all tenants share. */
  readonly tenantId?: string | undefined;
  readonly row: ConfigRow;
  readonly entry: HistoryEntry;
  /** The row whose version must still be stored; `undefined` if none may exist. */
  readonly seen: ConfigRow | undefined;
}

/** Reads are consistent and bypass the cache. */
export interface ConfigStore extends ConfigRowReader {
  /** Writes row and entry atomically; `false` if the stored row has another version. */
  write(write: RowWrite): Promise<boolean>;
  /** For a transaction with other items. */
  itemsOf(write: RowWrite): readonly CommitItem[];
  /** The newest entry first. `before` is exclusive. */
  history(
    address: RowAddress,
    range: { readonly before?: number | undefined; readonly limit: number },
  ): Promise<readonly HistoryEntry[]>;
  /** Encrypted rows of all tenants. `from` is the `next` of the previous page. */
  sealedRows(from: string | undefined): Promise<{
    readonly rows: readonly SealedRow[];
    readonly scanned: number;
    readonly next?: string;
  }>;
  /** Returns `false` if another write has changed the row. */
  reseal(row: SealedRow, value: Sealed): Promise<boolean>;
}
