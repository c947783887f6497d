import type { ConfigKeyHandle } from "../declare/declaration.ts";
import type { WriteAction } from "./config-store.ts";
import type { OperatorContext } from "./operator-session.ts";
import type { ConfigTarget } from "./target.ts";

/** Options of {@link configHistory}. */
export interface ConfigHistoryOptions extends ConfigTarget {
  /** Only versions below this one: the `next` of the page before. */
  readonly before?: number | undefined;
  /** The maximum number of entries, 1 to 100. Default 50. */
  readonly limit?: number | undefined;
}

/** One entry of a row's history. */
export interface ConfigHistoryItem {
  readonly version: number;
  readonly action: WriteAction;
  /** Absent for a secret, and if the row was reset. */
  readonly value?: unknown;
  /** ISO 8601. */
  readonly updatedAt?: string;
  /** Of a system row, only callers who may write it see this and `reason`. */
  readonly updatedBy?: string;
  readonly reason?: string;
}

/** A page of a row's history, the newest entry first. */
export interface ConfigHistoryPage {
  readonly items: readonly ConfigHistoryItem[];
  /** `before` of the next page; absent on the last one. */
  readonly next?: number;
}

/**
 * Lists the checked writes to a key's row at one level, newest first.
 *
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError for another
 * tenant or user without `access.systemAdmin`; ValidationError with the invalid fields;
 * FrameworkError `config_unavailable` if the store fails.
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
