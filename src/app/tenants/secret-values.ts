import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { Registry } from "../registry/registry.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/**
 * Creates a function that removes secrets from rows. The value of a configuration row that is
 * sealed, or whose key is encrypted, becomes `{ secret: true }`. The export shows that a secret
 * exists but never its value, even if the value is readable.
 */
export function withoutSecrets(
  registry: Pick<Registry, "configKeys">,
): (item: StoredItem) => StoredItem {
  return (item) => {
    const { value } = item;
    if (value === undefined) return item;
    // In the history, the sort key is the configuration key, `#` and the version. A configuration
    // key has no `#`.
    const id = String(textOf(item, "sk")).replace(/#.*/s, "");
    const key = registry.configKeys.get(id) ?? successorOf(id, registry);
    const isSecret = isSealedValue(value) || key?.definition.encrypted === true;
    return isSecret ? { ...item, value: { M: { secret: { BOOL: true } } } } : item;
  };
}

/** Detects the same values as `isSealed`, including forms that only a later version can open. */
function isSealedValue({ M: value }: NonNullable<StoredItem[string]>): boolean {
  return (
    value?.["sealed"]?.N !== undefined &&
    value["key"]?.S !== undefined &&
    value["data"]?.B !== undefined
  );
}
