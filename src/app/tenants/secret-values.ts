import { successorOf } from "../../parts/config/declare/key.ts";
import type { Registry } from "../registry/registry.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/**
 * Creates a function that replaces a secret value of a configuration row with `{ secret: true }`. A
 * value is secret if it is encrypted, or if its key is declared as `encrypted`, even if the value
 * is readable.
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

/** Whether a value is encrypted, even in a format that only a later version can decrypt. */
function isSealedValue({ M: value }: NonNullable<StoredItem[string]>): boolean {
  return (
    value?.["sealed"]?.N !== undefined &&
    value["key"]?.S !== undefined &&
    value["data"]?.B !== undefined
  );
}
