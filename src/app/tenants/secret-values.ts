import { successorOf } from "../../parts/config/declare/former-keys.ts";
import type { Registry } from "../registry/registry.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/**
 * Makes what keeps secrets in: the value of a configuration row that is sealed, or whose key is encrypted, becomes
 * `{ secret: true }`. That there is one is told, what it is never, be it readable or not.
 */
export function withoutSecrets(
  registry: Pick<Registry, "configKeys">,
): (item: StoredItem) => StoredItem {
  return (item) => {
    const { value } = item;
    if (value === undefined) return item;
    // In the history the version follows the key, which has no `#`.
    const id = String(textOf(item, "sk")).replace(/#.*/s, "");
    const key = registry.configKeys.get(id) ?? successorOf(id, registry);
    const isSecret = isSealedValue(value) || key?.definition.encrypted === true;
    return isSecret ? { ...item, value: { M: { secret: { BOOL: true } } } } : item;
  };
}

/** As `isSealed` knows them, be it in a form that only a later version opens. */
function isSealedValue({ M: value }: NonNullable<StoredItem[string]>): boolean {
  return (
    value?.["sealed"]?.N !== undefined &&
    value["key"]?.S !== undefined &&
    value["data"]?.B !== undefined
  );
}
