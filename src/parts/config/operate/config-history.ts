import { type FieldError, ValidationError } from "../../../base/errors/errors.ts";
import { defined } from "../../../base/types/defined.ts";
import type { ConfigKeyHandle } from "../declare/key.ts";
import { assertCall } from "./operator-call.ts";
import {
  callStore,
  type HistoryEntry,
  logOtherTarget,
  type OperatorContext,
  openOperatorSession,
  type WriteAction,
} from "./operator-session.ts";
import { authorizeRead, type ConfigTarget, levelOf, mayWriteSystemRow } from "./target.ts";
import { isVersion, wholeNumber } from "./written-row.ts";

const defaultPage = 50;
const maxPage = 100;

/**
 * Lists the sets, resets and undos of a key's row at one level, the newest first.
 * @throws NotFoundError if the caller may not read the key; AccessDeniedError for another tenant or
 * user without `access.systemAdmin`; ValidationError with the invalid fields; FrameworkError
 * `config_unavailable` if the store fails.
 * @example
 * const { items } = await configHistory(ctx, config.maxUploadSizeMb, { limit: 10 });
 */
export async function configHistory(
  ctx: OperatorContext,
  handle: ConfigKeyHandle<unknown>,
  options: ConfigHistoryOptions = {},
): Promise<ConfigHistoryPage> {
  assertCall("configHistory", handle, options);
  const { id, definition } = handle;
  const { before, limit = defaultPage } = options;
  const authorized = authorizeRead(ctx.user, handle, options);
  const fields: FieldError[] = [];
  if (before !== undefined && !isVersion(before)) fields.push(wholeNumber("before"));
  if (!isVersion(limit) || limit < 1 || limit > maxPage)
    fields.push({ field: "limit", error: `must be from 1 to ${maxPage}` });
  if (fields.length > 0) throw new ValidationError(fields);
  const { partition } = levelOf(authorized);
  logOtherTarget(ctx, "history", id, authorized);
  const { store } = openOperatorSession(ctx, authorized.owner);
  const entries = await callStore("read", () =>
    store.history({ partition, key: id }, { before, limit: limit + 1 }),
  );
  const page = entries.slice(0, limit);
  const next = entries.length > limit ? page.at(-1)?.version : undefined;
  const showsWriter = authorized.scope !== "system" || mayWriteSystemRow(ctx.user, handle);
  return {
    items: page.map((entry) => historyItem(entry, definition.encrypted, showsWriter)),
    ...defined({ next }),
  };
}

/** Options of {@link configHistory}. */
export interface ConfigHistoryOptions extends ConfigTarget {
  /** Lists only versions below this one: the `next` of the previous page. Default: all. */
  readonly before?: number | undefined;
  /** Maximum number of entries, 1 to 100. Default 50. */
  readonly limit?: number | undefined;
}

/** Entry of a row's history. */
export interface ConfigHistoryItem {
  readonly version: number;
  readonly action: WriteAction;
  /** Value that was written; absent for a secret, and if the row was reset. */
  readonly value?: unknown;
  /** Time of the write, in ISO 8601. */
  readonly updatedAt?: string;
  /**
   * ID of the writing user. For a system row, only callers who may write it see this field and
   * `reason`.
   */
  readonly updatedBy?: string;
  readonly reason?: string;
}

/** Page of a row's history, the newest entry first. */
export interface ConfigHistoryPage {
  readonly items: readonly ConfigHistoryItem[];
  /** Value for `before` to get the next page; absent on the last page. */
  readonly next?: number;
}

function historyItem(
  { version, action, value, updatedAt, updatedBy, reason }: HistoryEntry,
  encrypted: boolean,
  showsWriter: boolean,
): ConfigHistoryItem {
  return {
    version,
    action,
    ...defined({
      value: encrypted ? undefined : value,
      updatedAt,
      updatedBy: showsWriter ? updatedBy : undefined,
      reason: showsWriter ? reason : undefined,
    }),
  };
}
