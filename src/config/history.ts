import { ValidationError } from "../errors/errors.ts";
import type { ConfigKeyHandle } from "./declaration.ts";
import { available, noteOther, type OperatorContext, openOperatorSession } from "./operator-session.ts";
import type { HistoryEntry, WriteAction } from "./store.ts";
import { aimedLevel, aimToRead, type ConfigTarget } from "./target.ts";
import { isVersion } from "./writes.ts";

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
  readonly updatedBy?: string;
  readonly reason?: string;
}

/** A page of a row's history, the newest entry first. */
export interface ConfigHistoryPage {
  readonly items: readonly ConfigHistoryItem[];
  /** Where there are more: `before` of the next page. */
  readonly next?: number;
}

const defaultPage = 50;
const maxPage = 100;

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
  const { id, definition } = handle;
  const { before, limit = defaultPage } = options;
  const aim = aimToRead(ctx.user, handle, options);
  const fields = [
    ...(before === undefined || isVersion(before) ? [] : [{ field: "before", error: "must be a whole number, 0 or more" }]),
    ...(isVersion(limit) && limit >= 1 && limit <= maxPage ? [] : [{ field: "limit", error: `must be from 1 to ${maxPage}` }]),
  ];
  if (fields.length > 0) throw new ValidationError(fields);
  const { partition } = aimedLevel(aim);
  noteOther(ctx, "history", id, aim);
  const { store } = openOperatorSession(ctx, aim.owner);
  // One more than asked for tells whether there is a next page.
  const entries = await available("read", () => store.history({ partition, key: id }, { before, limit: limit + 1 }));
  const page = entries.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map((entry) => historyItem(definition.encrypted, entry)),
    ...(entries.length > limit && last !== undefined ? { next: last.version } : {}),
  };
}

function historyItem(
  encrypted: boolean,
  { version, action, value, updatedAt, updatedBy, reason }: HistoryEntry,
): ConfigHistoryItem {
  return {
    version,
    action,
    ...(encrypted || value === undefined ? {} : { value }),
    ...(updatedAt === undefined ? {} : { updatedAt }),
    ...(updatedBy === undefined ? {} : { updatedBy }),
    ...(reason === undefined ? {} : { reason }),
  };
}
