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
  /** Absent for a secret, and if no level has a value. */
  readonly value?: unknown;
  readonly source: ConfigSource;
  /** For an encrypted key: whether a secret is set. */
  readonly isSet?: boolean;
  /** The version of the row that supplies the value. */
  readonly version?: number;
}

/** A key with its whole cascade. */
export interface ConfigExplanation extends ConfigItem {
  /** In the order of the cascade. */
  readonly levels: readonly ConfigLevel[];
  readonly declaration: DeclarationView;
  /** How long ago the cache fetched the key's rows, in milliseconds; absent if it has none. */
  readonly cacheAgeMs?: number;
}

/**
 * Explains where a key's value comes from: every level with its value, who set it, when and
 * why, and which level wins. Reads consistently and bypasses the cache.
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
