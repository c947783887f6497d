import type { ConfigKeyHandle } from "../declare/declaration.ts";
import type { ConfigSource } from "../read/cascade.ts";
import type { OperatorContext } from "./operator-session.ts";
import type { ConfigTarget } from "./target.ts";
import type { ChangeOptions } from "./written-row.ts";

/** Options of {@link setConfig}. */
export interface SetConfigOptions extends ConfigTarget, ChangeOptions {
  /** From when on the value no longer counts: ISO 8601 with its zone, in the future. Default: never. */
  readonly expiresAt?: string | undefined;
}

/** Options of {@link resetConfig}. */
export interface ResetConfigOptions extends ConfigTarget, ChangeOptions {}

/** Options of {@link undoConfig}. */
export interface UndoConfigOptions extends ConfigTarget, ChangeOptions {
  /** The version to go back to; 0 is before the first. Default: the one before the current. */
  readonly version?: number | undefined;
}

/** What a checked write has come to. */
export interface ConfigWriteResult {
  readonly key: string;
  /** The value that now counts for the target; absent for a secret, and where no level has one. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** The version of the row that was written; absent where there is none. */
  readonly version?: number;
}

/**
 * Sets a key's value at one level, checked: type, options, bounds (at every level), size, level
 * and role (specification 4.1, rule 4). The row and its entry in the history are written
 * together. Once it returns, this process reads the new value.
 *
 * @throws NotFoundError where the caller may not read the key; AccessDeniedError where they may
 * not write it; ValidationError with the fields that do not hold; ConflictError
 * `version_conflict` for another version than `expectedVersion`; PipelineError 501
 * `no_key_ring` for an encrypted key, where no key ring is configured; FrameworkError `config_unavailable`
 * where the store fails.
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
 * Takes a key's value at one level away, so that the next level decides. The row becomes a
 * tombstone that keeps the version. Without effect where no value is stored.
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
 * Brings back what an earlier version of a row held, under a new version; an undo is itself
 * undone by another. The value has to be one that could be set now.
 *
 * @throws NotFoundError for a version that the history does not have; otherwise as {@link setConfig}.
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
