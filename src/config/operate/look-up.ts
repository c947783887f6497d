import type { ConfigKeyHandle, ConfigScope, ConfigType } from "../declare/declaration.ts";
import type { ConfigSource } from "../read/cascade.ts";
import type { ConfigLevel, DeclarationView } from "./explain-levels.ts";
import type { OperatorContext } from "./operator-session.ts";
import type { ConfigTarget } from "./target.ts";

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
  const { explainKey } = await import("./explain-config.ts");
  return explainKey(ctx, handle, target);
}
