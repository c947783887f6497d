import { isSealed } from "../../../base/secrets/sealed.ts";
import { defined } from "../../../base/types/defined.ts";
import { frameworkDefault } from "../declare/framework-defaults.ts";
import type { ConfigKeyHandle, ConfigScope, ConfigType } from "../declare/key.ts";
import type { ConfigSource } from "../read/cascade.ts";
import { type ConfigRow, type RowLevel, rowLevels } from "../read/rows.ts";
import {
  type ConfigLevel,
  type DeclarationView,
  declarationView,
  explainLevels,
} from "./explain-levels.ts";
import {
  addressesOf,
  logOtherTarget,
  type OperatorContext,
  type OperatorSession,
  openOperatorSession,
  readStored,
} from "./operator-session.ts";
import {
  authorizeRead,
  authorizeTarget,
  type ConfigTarget,
  mayRead,
  mayWriteSystemRow,
  ownerAt,
  type TargetKey,
} from "./target.ts";

/**
 * Explains where a key's value comes from: returns every level with its value, writer, time and
 * reason, and marks the level that wins. Reads consistently and bypasses the cache.
 *
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError for another tenant or
 * user without `access.systemAdmin`; ValidationError for an invalid target; FrameworkError
 * `config_unavailable` if the store fails.
 * @example
 * const { source, levels } = await explainConfig(ctx, config.maxUploadSizeMb);
 */
export async function explainConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  target: ConfigTarget = {},
): Promise<ConfigExplanation> {
  const authorized = authorizeRead(ctx.user, handle, target);
  logOtherTarget(ctx, "explain", handle.id, authorized);
  const owner = ownerAt(authorized);
  const session = openOperatorSession(ctx, owner);
  const levels = rowLevels(handle.definition.scope, owner);
  const rows = await readStored(session, addressesOf(handle, levels));
  const ages = levels.flatMap(({ partition }) => session.cache.ageMs(partition, handle.id) ?? []);
  const explanation = await explainRows(session, handle, levels, rows);
  return {
    ...explanation,
    levels: mayWriteSystemRow(ctx.user, handle)
      ? explanation.levels
      : explanation.levels.map(withoutWriter),
    declaration: declarationView(handle.definition),
    ...(ages.length === 0 ? {} : { cacheAgeMs: Math.max(...ages) }),
  };
}

/** Configuration key with its current value. */
export interface ConfigItem {
  readonly key: string;
  readonly type: ConfigType;
  readonly scope: ConfigScope;
  /** Current value; absent for a secret, and if no level has a value. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** Whether a secret is set; only for an encrypted key. */
  readonly isSet?: boolean;
  /** Version of the row that supplies the value. */
  readonly version?: number;
}

/** Configuration key with all levels of its cascade. */
export interface ConfigExplanation extends ConfigItem {
  /** All levels, in the order in which the cascade tries them. */
  readonly levels: readonly ConfigLevel[];
  readonly declaration: DeclarationView;
  /** Age of the key's cached rows, in milliseconds; absent if they are not cached. */
  readonly cacheAgeMs?: number;
}

function withoutWriter(level: ConfigLevel): ConfigLevel {
  if (level.source !== "system-row") return level;
  const { updatedBy: _updatedBy, reason: _reason, ...rest } = level;
  return rest;
}

/**
 * Lists the keys that the caller may read, with their values. Reads all rows at once, consistently.
 *
 * @throws AccessDeniedError for another tenant or user without `access.systemAdmin`;
 * ValidationError for an invalid target; FrameworkError `config_unavailable` if the store fails.
 */
export async function listConfig(
  ctx: OperatorContext,
  keys: readonly TargetKey[],
  target: ConfigTarget = {},
): Promise<readonly ConfigItem[]> {
  const authorized = authorizeTarget(ctx.user, target, "user");
  logOtherTarget(ctx, "list", undefined, authorized);
  const owner = ownerAt(authorized);
  const session = openOperatorSession(ctx, owner);
  const readable = keys
    .filter((key) => mayRead(ctx.user, key))
    .map((key) => ({ key, levels: rowLevels(key.definition.scope, owner) }));
  const rows = await readStored(
    session,
    readable.flatMap(({ key, levels }) => addressesOf(key, levels)),
  );
  let taken = 0;
  const items: ConfigItem[] = [];
  for (const { key, levels } of readable) {
    const own = rows.slice(taken, taken + levels.length);
    taken += levels.length;
    const { levels: _levels, ...item } = await explainRows(session, key, levels, own);
    items.push(item);
  }
  return items;
}

export async function explainRows(
  session: OperatorSession,
  { id, definition }: TargetKey,
  levels: readonly RowLevel[],
  rows: readonly (ConfigRow | undefined)[],
): Promise<ConfigItem & { readonly levels: readonly ConfigLevel[] }> {
  for (const row of rows) if (isSealed(row?.value)) await session.cipher.prepare(row.value.key);
  const explanation = await explainLevels({
    definition,
    openRow: (row, { partition }) =>
      session.cipher.openRow(row, definition, { partition, key: id }),
    rows: levels.map((level, index) => ({ level, row: rows[index] })),
    override: session.override(id),
    frameworkDefault: frameworkDefault(id, definition),
    nowMs: session.clock.now(),
    compute: async () => {
      try {
        return await session.computed.read(id, undefined, (node) =>
          definition.computed?.(session.contextFor(node)),
        );
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        session.log.warn("config.computed_failed", { key: id, message });
        throw error;
      }
    },
  });
  const { value, source, levels: explained } = explanation;
  const winner = explained.find(({ active }) => active);
  const { type, scope, encrypted } = definition;
  return {
    key: id,
    type,
    scope,
    ...defined({ value: encrypted ? undefined : value }),
    source,
    ...(encrypted ? { isSet: winner?.isSet === true } : {}),
    ...defined({ version: winner?.version }),
    levels: explained,
  };
}
