import type { ConfigKeyDefinition } from "./key.ts";
import { clamp, typeMismatch } from "./value-check.ts";

/** Defaults of keelson itself (specification 8): the last level of the cascade. */
const frameworkDefaults: ReadonlyMap<string, unknown> = new Map([
  ["files:config:max-upload-size-mb", 10],
]);

/** Returns keelson's default for a key, within its bounds, if it matches the declaration. */
export function frameworkDefault(id: string, definition: ConfigKeyDefinition): unknown {
  const value = frameworkDefaults.get(id);
  if (value === undefined || typeMismatch(definition, value) !== undefined) return undefined;
  return typeof value === "number" && definition.bounds !== undefined
    ? clamp(value, definition.bounds)
    : value;
}
