import type { ConfigSource } from "./cascade.ts";
import type { ConfigKeyHandle, ConfigScope, ConfigType } from "./declaration.ts";
import { type ConfigLevel, type DeclarationView, declarationView, explainLevels } from "./explain.ts";
import { frameworkDefault } from "./framework-defaults.ts";
import {
  addressesOf,
  noteOther,
  type OperatorContext,
  type OperatorSession,
  openOperatorSession,
  readStored,
} from "./operator-session.ts";
import { type ConfigRow, type RowLevel, rowLevels } from "./rows.ts";
import { isSealed } from "./sealed.ts";
import { aimAt, aimToRead, type ConfigTarget, mayRead, ownerAt, type TargetKey } from "./target.ts";

/** A key in a list. */
export interface ConfigItem {
  readonly key: string;
  readonly type: ConfigType;
  readonly scope: ConfigScope;
  /** Absent for a secret, and where no level has one. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** Of a secret: whether there is one. */
  readonly isSet?: boolean;
  /** Of the row that supplies the value. */
  readonly version?: number;
}

/** A key with its whole cascade. */
export interface ConfigExplanation extends ConfigItem {
  /** In the order of the cascade. */
  readonly levels: readonly ConfigLevel[];
  readonly declaration: DeclarationView;
  /** How long ago the cache has fetched the key's rows, in milliseconds; absent where it has not. */
  readonly cacheAgeMs?: number;
}

/**
 * Explains where a key's value comes from: every level with its value, who set it, when and
 * why, and which one counts. Reads consistently, past the cache.
 *
 * @throws as {@link configHistory}.
 * @example
 * const { source, levels } = await explainConfig(ctx, config.maxUploadSizeMb);
 */
export async function explainConfig(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  target: ConfigTarget = {},
): Promise<ConfigExplanation> {
  const aim = aimToRead(ctx.user, handle, target);
  noteOther(ctx, "explain", handle.id, aim);
  const owner = ownerAt(aim);
  const session = openOperatorSession(ctx, owner);
  const levels = rowLevels(handle.definition.scope, owner);
  const rows = await readStored(session, addressesOf(handle, levels));
  const ages = levels.flatMap(({ partition }) => session.kept.ageMs(partition, handle.id) ?? []);
  return {
    ...(await explained(session, handle, levels, rows)),
    declaration: declarationView(handle.definition),
    ...(ages.length === 0 ? {} : { cacheAgeMs: Math.max(...ages) }),
  };
}

/**
 * Lists keys with their values, those that the caller may read; all rows in one go, consistently.
 *
 * @throws AccessDeniedError for another tenant or user without `access.systemAdmin`;
 * ValidationError for a target that is none; FrameworkError `config_unavailable`.
 */
export async function listConfig(
  ctx: OperatorContext,
  keys: readonly TargetKey[],
  target: ConfigTarget = {},
): Promise<readonly ConfigItem[]> {
  const aim = aimAt(ctx.user, target, "user");
  noteOther(ctx, "list", undefined, aim);
  const owner = ownerAt(aim);
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
    const { levels: _levels, ...item } = await explained(session, key, levels, rows.slice(taken, taken + levels.length));
    items.push(item);
    taken += levels.length;
  }
  return items;
}

/** Explains a key from rows that were read. */
export async function explained(
  session: OperatorSession,
  { id, definition }: TargetKey,
  levels: readonly RowLevel[],
  rows: readonly (ConfigRow | undefined)[],
): Promise<ConfigItem & { readonly levels: readonly ConfigLevel[] }> {
  for (const row of rows) if (isSealed(row?.value)) await session.cipher.prepare(row.value.key);
  const explanation = await explainLevels({
    definition,
    openRow: (row, { partition }) => session.cipher.openRow(row, definition, { partition, key: id }),
    rows: levels.map((level, index) => ({ level, row: rows[index] })),
    override: session.override(id),
    frameworkDefault: frameworkDefault(id, definition),
    nowMs: session.clock.now(),
    compute: async () => {
      try {
        return await session.computed.read(id, undefined, (node) => definition.computed?.(session.contextFor(node)));
      } catch (error) {
        session.log.warn("config.computed_failed", { key: id, message: error instanceof Error ? error.message : String(error) });
        throw error;
      }
    },
  });
  const { value, source } = explanation;
  const version = explanation.levels.find(({ active }) => active)?.version;
  return {
    key: id,
    type: definition.type,
    scope: definition.scope,
    ...(definition.encrypted || value === undefined ? {} : { value }),
    source,
    ...(definition.encrypted ? { isSet: explanation.levels.some(({ active, isSet }) => active && isSet) } : {}),
    ...(version === undefined ? {} : { version }),
    levels: explanation.levels,
  };
}
