import { describeRule } from "../../../base/identity/access.ts";
import { defined } from "../../../base/types/defined.ts";
import type {
  Bounds,
  ConfigKeyDefinition,
  ConfigKeyHandle,
  ConfigScope,
  ConfigType,
} from "../declare/key.ts";
import { rowLevels } from "../read/rows.ts";
import { type ConfigItem, type ConfigLevel, explainRows } from "./explain-levels.ts";
import type { LimitUse } from "./limit-use.ts";
import {
  addressesOf,
  logOtherTarget,
  type OperatorContext,
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
 * Explains where a key's value comes from: every level with its value, writer, time and reason, and
 * which one wins. Reads consistently and bypasses the cache.
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError for another tenant or
 * user without `access.systemAdmin`; ValidationError for an invalid target; FrameworkError
 * `config_unavailable` if the store fails.
 */
export async function explainKey(
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
    ...(ages.length > 0 && { cacheAgeMs: Math.max(...ages) }),
  };
}

/** Configuration key with all levels of its cascade. */
export interface ConfigExplanation extends ConfigItem {
  /** All levels, in the order of the cascade (specification 4.1). */
  readonly levels: readonly ConfigLevel[];
  readonly declaration: DeclarationView;
  /** Age of the key's cached rows, in milliseconds; absent if they are not cached. */
  readonly cacheAgeMs?: number;
  /** Limits that read the key; absent without them. See `docs/limits.md`. */
  readonly limits?: readonly LimitUse[];
}

/** Public part of a key's declaration. */
export interface DeclarationView {
  readonly type: ConfigType;
  readonly scope: ConfigScope;
  readonly bounds?: Bounds;
  readonly options?: readonly string[];
  readonly computed: boolean;
  readonly encrypted: boolean;
  readonly allowPerRequest: boolean;
  readonly read: string;
  readonly write: string;
}

function withoutWriter(level: ConfigLevel): ConfigLevel {
  if (level.source !== "system-row") return level;
  const { updatedBy: _updatedBy, reason: _reason, ...rest } = level;
  return rest;
}

/** Omits the default, which may be a secret. */
function declarationView(definition: ConfigKeyDefinition): DeclarationView {
  const { type, scope, bounds, options, computed, encrypted, allowPerRequest, read, write } =
    definition;
  return {
    type,
    scope,
    ...defined({ bounds, options }),
    computed: computed !== undefined,
    encrypted,
    allowPerRequest,
    read: describeRule(read),
    write: describeRule(write),
  };
}

/**
 * Lists the keys that the caller may read. Reads all rows in one consistent read.
 * @throws the errors of {@link explainKey} except NotFoundError.
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
  const left = [...rows];
  const items: ConfigItem[] = [];
  for (const { key, levels } of readable) {
    const own = left.splice(0, levels.length);
    const { levels: _levels, ...item } = await explainRows(session, key, levels, own);
    items.push(item);
  }
  return items;
}
