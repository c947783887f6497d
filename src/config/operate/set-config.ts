import type { ConfigKeyHandle } from "../declare/declaration.ts";
import type { ConfigSource } from "../read/cascade.ts";
import type { OperatorContext } from "./operator-session.ts";
import type { ConfigTarget } from "./target.ts";
import type { ChangeOptions } from "./written-row.ts";

/** Options of {@link setConfig}. */
export interface SetConfigOptions extends ConfigTarget, ChangeOptions {
  /** When the value expires: ISO 8601 with a time zone, in the future. Default: never. */
  readonly expiresAt?: string | undefined;
}

/** Options of {@link resetConfig}. */
export interface ResetConfigOptions extends ConfigTarget, ChangeOptions {}

/** Options of {@link undoConfig}. */
export interface UndoConfigOptions extends ConfigTarget, ChangeOptions {
  /** The version to go back to; 0 is the state before the first. Default: the previous version. */
  readonly version?: number | undefined;
}

/** The outcome of a checked write. */
export interface ConfigWriteResult {
  readonly key: string;
  /** The value that the target now reads; absent for a secret, and if no level has one. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** The version of the written row; absent if there is no row. */
  readonly version?: number;
}

/**
 * Sets a key's value at one level. Checks type, options, bounds (at every level), size, level
 * and role (specification 4.1, rule 4). Writes the row and its history entry in one
 * transaction; from then on this process reads the new value.
 *
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError if they may
 * not write it; ValidationError with the invalid fields; ConflictError `version_conflict` if
 * the row's version is not `expectedVersion`; PipelineError 501 `no_key_ring` for an encrypted
 * key without a configured key ring; FrameworkError `config_unavailable` if the store fails.
 * @example
 * await setConfig(ctx, config.maxUploadSizeMb, 50, { reason: "larger scans", expectedVersion: 3 });
 */
export async function setConfig<Value>(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<Value>,
  value: NoInfer<Exclude<Value, undefined>>,
  options: SetConfigOptions = {},
): Promise<ConfigWriteResult> {
  const { storeChange, setting } = await import("./change.ts");
  return storeChange(ctx, handle, setting(handle, value, options));
}

/**
 * Removes a key's value at one level, so that the next level decides. The row becomes a
 * tombstone that keeps the version. No effect if no value is stored.
 *
 * @throws as {@link setConfig}.
 * @example
 * await resetConfig(ctx, config.maxUploadSizeMb, { reason: "back to the default" });
 */
export async function resetConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: ResetConfigOptions = {},
): Promise<ConfigWriteResult> {
  const { storeChange, resetting } = await import("./change.ts");
  return storeChange(ctx, handle, resetting(options));
}

/**
 * Restores an earlier version of a row, as a new version; another undo reverts it. The value
 * has to be valid now.
 *
 * @throws NotFoundError if the history does not have the version; otherwise as {@link setConfig}.
 * @example
 * await undoConfig(ctx, config.maxUploadSizeMb, { version: 2 });
 */
export async function undoConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: UndoConfigOptions = {},
): Promise<ConfigWriteResult> {
  const { storeChange, undoing } = await import("./change.ts");
  return storeChange(ctx, handle, undoing(handle, options));
}
