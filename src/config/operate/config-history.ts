import { ValidationError } from "../../errors/errors.ts";
import type { HistoryEntry } from "./config-store.ts";
import type { ConfigHistoryItem, ConfigHistoryOptions, ConfigHistoryPage, configHistory } from "./history.ts";
import { available, noteOther, type OperatorContext, openOperatorSession } from "./operator-session.ts";
import { aimedLevel, aimToRead, mayWriteSystemRow, type TargetKey } from "./target.ts";
import { isVersion } from "./written-row.ts";

const defaultPage = 50;
const maxPage = 100;

/** The page of {@link configHistory}, with its throws. */
export async function historyPage(
  ctx: OperatorContext,
  handle: TargetKey,
  options: ConfigHistoryOptions,
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
  const showsWriter = aim.scope !== "system" || mayWriteSystemRow(ctx.user, handle);
  return {
    items: page.map((entry) => historyItem(entry, definition.encrypted, showsWriter)),
    ...(entries.length > limit && last !== undefined ? { next: last.version } : {}),
  };
}

function historyItem(
  { version, action, value, updatedAt, updatedBy, reason }: HistoryEntry,
  encrypted: boolean,
  showsWriter: boolean,
): ConfigHistoryItem {
  return {
    version,
    action,
    ...(encrypted || value === undefined ? {} : { value }),
    ...(updatedAt === undefined ? {} : { updatedAt }),
    ...(updatedBy === undefined || !showsWriter ? {} : { updatedBy }),
    ...(reason === undefined || !showsWriter ? {} : { reason }),
  };
}
