import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { Registry } from "../registry/registry.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/**
 * Creates a function that replaces secrets in rows: the value of a configuration row that is
 * sealed, or whose key is encrypted, becomes `{ secret: true }`, even if it is readable.
 */
export function withoutSecrets(
  registry: Pick<Registry, "configKeys">,
): (item: StoredItem) => StoredItem {
  return (item) => {
    const { value } = item;
    if (value === undefined) return item;
    // In the history, the sort key is the configuration key, which has no `#`, then `#` and the
    // version.
    const id = String(textOf(item, "sk")).replace(/#.*/s, "");
    const key = registry.configKeys.get(id) ?? successorOf(id, registry);
    const isSecret = isSealedValue(value) || key?.definition.encrypted === true;
    return isSecret ? { ...item, value: { M: { secret: { BOOL: true } } } } : item;
  };
}

/** Like `isSealed`, but also for forms that only a later version can open. */
function isSealedValue({ M: value }: NonNullable<StoredItem[string]>): boolean {
  return (
    value?.["sealed"]?.N !== undefined &&
    value["key"]?.S !== undefined &&
    value["data"]?.B !== undefined
  );
}
