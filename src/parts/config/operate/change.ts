import {
  CommitConditionError,
  ConflictError,
  NotFoundError,
  ValidationError,
} from "../../../base/errors/errors.ts";
import type { CommitItem } from "../../../base/types/database.ts";
import { defined } from "../../../base/types/defined.ts";
import type { ConfigKeyHandle } from "../declare/key.ts";
import type { ConfigSource } from "../read/cascade.ts";
import { type ConfigRow, type RowAddress, rowLevels } from "../read/rows.ts";
import { explainRows } from "./explain-levels.ts";
import { assertCall } from "./operator-call.ts";
import {
  addressesOf,
  type ConfigStore,
  callStore,
  type HistoryEntry,
  logOtherTarget,
  type OperatorContext,
  openOperatorSession,
  type RowWrite,
  readStored,
  type WriteAction,
} from "./operator-session.ts";
import { authorizeWrite, type ConfigTarget, levelOf, ownerAt, type TargetKey } from "./target.ts";
import {
  type ChangeOptions,
  rowToReset,
  rowToRestore,
  rowToSet,
  versionOf,
  versionToRestore,
  type Writer,
} from "./written-row.ts";

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
  assertCall("setConfig", handle, options);
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
  assertCall("resetConfig", handle, options);
  return storeChange(ctx, handle, resetChange(options));
}

/**
 * Restores an earlier version of a row as a new version; a second undo reverts the first. The
 * restored value must be valid under the current declaration.
 * @throws NotFoundError if the history lacks the version; ConflictError `nothing_to_undo` if the
 * row was never written; otherwise the errors of `setConfig`.
 * @example
 * await undoConfig(ctx, config.maxUploadSizeMb, { version: 2 });
 */
export async function undoConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: UndoConfigOptions = {},
): Promise<ConfigWriteResult> {
  assertCall("undoConfig", handle, options);
  return storeChange(ctx, handle, undoChange(handle, options));
}

/** Options of `setConfig`. */
export interface SetConfigOptions extends ConfigTarget, ChangeOptions {
  /**
   * Future time at which the value expires: a `Date`, or ISO 8601 with a time zone. Default: never.
   */
  readonly expiresAt?: Date | string | undefined;
}

/** Options of `resetConfig`. */
export interface ResetConfigOptions extends ConfigTarget, ChangeOptions {}

/** Options of {@link undoConfig}. */
export interface UndoConfigOptions extends ConfigTarget, ChangeOptions {
  /** Version to restore; 0 is the state before the first write. Default: the previous version. */
  readonly version?: number | undefined;
}

/** Result of `setConfig`, `resetConfig` and `undoConfig`. */
export interface ConfigWriteResult {
  readonly key: string;
  /** Value that now applies to the target; absent for a secret, and if no level has a value. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** Version of the written row; absent if there is no row. */
  readonly version?: number;
}

const maxAttempts = 5;

/** Uses `ctx.commit`, so that the change happens exactly once, and without other changes (specification 6.6). */
export function commitChange(
  ctx: CommittingContext,
  handle: TargetKey,
  wanted: ConfigChange,
): Promise<ConfigWriteResult> {
  return change(ctx, handle, wanted, async (store, write, result) => {
    try {
      await ctx.commit(store.itemsOf(write), result);
      return true;
    } catch (error) {
      if (error instanceof CommitConditionError) return false;
      throw error;
    }
  });
}

export function storeChange(
  ctx: OperatorContext,
  handle: TargetKey,
  wanted: ConfigChange,
): Promise<ConfigWriteResult> {
  return change(ctx, handle, wanted, (store, write) => store.write(write));
}

interface CommittingContext extends OperatorContext {
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
}

interface ConfigChange {
  readonly target: ConfigTarget & ChangeOptions;
  readonly action: WriteAction;
  /** Returns `undefined` if the change requires no write. */
  readonly decide: (
    current: ConfigRow | undefined,
    situation: ChangeSituation,
  ) => ConfigRow | undefined | Promise<ConfigRow>;
}

export function setChange(
  { definition }: TargetKey,
  value: unknown,
  options: SetConfigOptions,
): ConfigChange {
  return {
    target: options,
    action: "set",
    decide: (current, writer) => rowToSet(definition, { ...options, value }, current, writer),
  };
}

export function resetChange(options: ResetConfigOptions): ConfigChange {
  return {
    target: options,
    action: "reset",
    decide: (current, writer) => rowToReset(options, current, writer),
  };
}

export function undoChange({ definition }: TargetKey, options: UndoConfigOptions): ConfigChange {
  return {
    target: options,
    action: "undo",
    decide: async (current, situation) => {
      const version = versionToRestore(options, current);
      const past = version === 0 ? undefined : await entryOf(situation, version);
      return rowToRestore(definition, past, options, current, situation);
    },
  };
}

/** Resolves to `false` if another write came first. */
type WriteRow = (
  store: ConfigStore,
  write: RowWrite,
  result: ConfigWriteResult,
) => Promise<boolean>;

interface ChangeSituation extends Writer {
  readonly store: ConfigStore;
  readonly address: RowAddress;
}

/** If another write came first, a retry builds on that write or reports the version conflict. */
async function change(
  ctx: OperatorContext,
  handle: TargetKey,
  wanted: ConfigChange,
  writeRow: WriteRow,
): Promise<ConfigWriteResult> {
  try {
    return await attempt(ctx, handle, wanted, writeRow);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    // For callers who see only the message.
    const { fields } = error;
    const problems = fields.map((problem) => `${problem.field} ${problem.error}`);
    throw new ValidationError(fields, `${handle.id}: ${problems.join("; ")}`);
  }
}

async function attempt(
  ctx: OperatorContext,
  handle: TargetKey,
  { target, action, decide }: ConfigChange,
  writeRow: WriteRow,
): Promise<ConfigWriteResult> {
  const { id, definition } = handle;
  const { encrypted } = definition;
  const authorized = authorizeWrite(ctx.user, handle, target);
  const { partition } = levelOf(authorized);
  logOtherTarget(ctx, action, id, authorized);
  const session = openOperatorSession(ctx, authorized.owner);
  const { store } = session;
  const levels = rowLevels(definition.scope, authorized.owner);
  const index = levels.findIndex((level) => level.partition === partition);
  const address = { partition, key: id };
  const outcome = async (rows: readonly (ConfigRow | undefined)[]): Promise<ConfigWriteResult> => {
    const { value, source } = await explainRows(session, handle, levels, rows);
    const row = rows[index];
    return { key: id, ...defined({ value }), source, ...(row && { version: versionOf(row) }) };
  };
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const rows = await readStored(session, addressesOf(handle, levels));
    const current = rows[index];
    const situation = { store, address, nowMs: session.clock.now(), userId: ctx.user.id };
    const decided = await decide(current, situation);
    if (decided === undefined) return outcome(rows);
    const { value, version } = decided;
    const row =
      encrypted && value !== undefined
        ? { ...decided, value: await session.cipher.seal(value, address, version) }
        : decided;
    const result = await outcome(rows.with(index, row));
    // History omits the value of a secret, so that a revoked secret does not survive there.
    const entry = { ...row, ...(encrypted && { value: undefined }), action };
    const { tenantId } = ownerAt(authorized);
    const write = { address, tenantId, row, entry, seen: current };
    const written = await callStore("written", () => writeRow(store, write, result)).catch(
      (error: unknown) => {
        session.cache.invalidate(partition, id); // the write may have succeeded despite the error
        throw error;
      },
    );
    if (!written) continue;
    session.cache.noteWrite(partition, id, row);
    const { scope } = authorized;
    ctx.log.info("config.written", { key: id, action, scope, version });
    return result;
  }
  throw new ConflictError("version_conflict");
}

async function entryOf(
  { store, address }: ChangeSituation,
  version: number,
): Promise<HistoryEntry> {
  const range = { before: version + 1, limit: 1 };
  const [entry] = await callStore("read", () => store.history(address, range));
  if (entry?.version !== version) throw new NotFoundError("version", String(version));
  return entry;
}
