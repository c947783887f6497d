import { FrameworkError, isTypedError } from "../../../base/errors/errors.ts";
import type { User } from "../../../base/identity/user.ts";
import type { Logger } from "../../../base/log/logger.ts";
import type { Database } from "../../../base/types/database.ts";
import type { CachedRows } from "../cache/cached-rows.ts";
import type { ConfigSession } from "../read/resolver.ts";
import type { ConfigRow, RowAddress, RowLevel, RowOwner } from "../read/rows.ts";
import type { ConfigStore } from "./config-store.ts";
import type { AuthorizedTarget, TargetKey } from "./target.ts";

/** Under this member a `ctx.db` opens sessions for operators. */
export const operatorSession: unique symbol = Symbol("keelson.operatorSession");

/** What operating the configuration takes beyond reading it. */
export interface OperatorSession extends ConfigSession {
  readonly store: ConfigStore;
  /** What requests of this process have of the rows, to be told of each write. */
  readonly cache: RowCache;
  /** The app-boot override of a key; `undefined` where there is none. */
  override(id: string): unknown;
}

/** Rows as requests have them. */
export type RowCache = Pick<CachedRows, "noteWrite" | "invalidate" | "ageMs">;

/** A database that configuration can be operated through: every `ctx.db` is one. */
export interface OperatorDatabase {
  [operatorSession](owner: RowOwner): OperatorSession;
}

/** The parts of a `ctx` that the operations use. */
export interface OperatorContext {
  readonly db: Database;
  readonly user: User;
  readonly log: Logger;
}

/**
 * Opens a session on behalf of `owner`.
 *
 * @throws TypeError where `db` is not a `ctx.db`.
 */
export function openOperatorSession({ db }: OperatorContext, owner: RowOwner): OperatorSession {
  const session = (db as Partial<OperatorDatabase>)[operatorSession]?.(owner);
  if (session === undefined)
    throw new TypeError("ctx.db is not one of keelson's; pass the ctx of a handler or job");
  return session;
}

/** Where the rows of a key are, one a level. */
export function addressesOf({ id }: TargetKey, levels: readonly RowLevel[]): RowAddress[] {
  return levels.map(({ partition }) => ({ partition, key: id }));
}

/**
 * Reads rows as they are stored at this moment.
 *
 * @throws FrameworkError `config_unavailable`.
 */
export function readStored(
  { store }: OperatorSession,
  addresses: readonly RowAddress[],
): Promise<readonly (ConfigRow | undefined)[]> {
  return callStore("read", () => store.read(addresses));
}

/**
 * Runs a call of the store.
 *
 * @throws FrameworkError `config_unavailable` where it fails.
 */
export async function callStore<Result>(
  what: "read" | "written",
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isTypedError(error)) throw error;
    throw new FrameworkError(
      "config_unavailable",
      `Configuration cannot be ${what} at the moment`,
      { cause: error },
    );
  }
}

/** Looking at another tenant or user is allowed to few, and never goes unseen. */
export function logOtherTarget(
  { log }: OperatorContext,
  operation: string,
  key: string | undefined,
  { isOther, owner }: AuthorizedTarget,
): void {
  if (!isOther) return;
  log.info("config.other_target", {
    operation,
    key,
    targetTenantId: owner.tenantId,
    targetUserId: owner.userId,
  });
}
