import { quoted } from "../../../base/errors/quoted.ts";
import type { ConfigKeyHandle } from "../declare/key.ts";
import type { ConfigWriteResult, ResetConfigOptions, SetConfigOptions } from "./change.ts";
import type { OperatorContext } from "./operator-session.ts";

// `change.ts` is loaded on the first call: a process that only reads configuration never needs it.

/**
 * Sets a key's value at one level. Checks type, options, bounds, size, level and role
 * (specification 4.1, rule 4). Writes the row and its history entry in one transaction; later reads
 * of this process return the new value.
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError if they may not write
 * it; ValidationError with the invalid fields, all named in its message; ConflictError
 * `version_conflict` if the row's version is not `expectedVersion`; PipelineError 501 `no_key_ring`
 * for an encrypted key without a key ring; FrameworkError `config_unavailable` if the store fails.
 * @example
 * await setConfig(ctx, config.maxUploadSizeMb, 50, { reason: "larger scans", expectedVersion: 3 });
 */
export async function setConfig<Value>(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<Value>,
  value: NoInfer<Exclude<Value, undefined>>,
  options: SetConfigOptions = {},
): Promise<ConfigWriteResult> {
  assertHandle("setConfig", handle);
  const { storeChange, setChange } = await import("./change.ts");
  return storeChange(ctx, handle, setChange(handle, value, options));
}

/**
 * Removes a key's value at one level, so that the next level decides. The row becomes a tombstone
 * that keeps the version. No effect if no value is stored.
 * @throws the errors of {@link setConfig}.
 * @example
 * await resetConfig(ctx, config.maxUploadSizeMb, { reason: "back to the default" });
 */
export async function resetConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: ResetConfigOptions = {},
): Promise<ConfigWriteResult> {
  assertHandle("resetConfig", handle);
  const { storeChange, resetChange } = await import("./change.ts");
  return storeChange(ctx, handle, resetChange(options));
}

/** Plain JavaScript may pass a key's ID, or a handle that does not exist. */
function assertHandle(call: string, handle: unknown): void {
  if (typeof handle === "object" && handle !== null && "definition" in handle) return;
  throw new TypeError(
    `${call}: ${quoted(handle)} is no config key's handle; pass one that r.config returned`,
  );
}
