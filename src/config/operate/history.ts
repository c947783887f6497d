import type { ConfigKeyHandle } from "../declare/declaration.ts";
import type { WriteAction } from "./config-store.ts";
import type { OperatorContext } from "./operator-session.ts";
import type { ConfigTarget } from "./target.ts";

/** Options of {@link configHistory}. */
export interface ConfigHistoryOptions extends ConfigTarget {
  /** Only versions below this one: the `next` of the page before. */
  readonly before?: number | undefined;
  /** At most so many entries, 1 to 100. Default 50. */
  readonly limit?: number | undefined;
}

/** One entry of a row's history. */
export interface ConfigHistoryItem {
  readonly version: number;
  readonly action: WriteAction;
  /** Absent for a secret, and where the row was reset. */
  readonly value?: unknown;
  /** ISO 8601. */
  readonly updatedAt?: string;
  /** Of a system row for those alone who may write it, as is `reason`. */
  readonly updatedBy?: string;
  readonly reason?: string;
}

/** A page of a row's history, the newest entry first. */
export interface ConfigHistoryPage {
  readonly items: readonly ConfigHistoryItem[];
  /** Where there are more: `before` of the next page. */
  readonly next?: number;
}

/**
 * Lists what checked writes have done to a key's row at one level, the newest first.
 *
 * @throws NotFoundError where the caller may not read the key; AccessDeniedError for another
 * tenant or user without `access.systemAdmin`; ValidationError with the fields that do not
 * hold; FrameworkError `config_unavailable` where the store fails.
 * @example
 * const { items } = await configHistory(ctx, config.maxUploadSizeMb, { limit: 10 });
 */
export async function configHistory(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: ConfigHistoryOptions = {},
): Promise<ConfigHistoryPage> {
  const { historyPage } = await import("./config-history.ts");
  return historyPage(ctx, handle, options);
}
