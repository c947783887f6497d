import type { ConfigKeyDefinition } from "./key.ts";
import { clamp, typeMismatch } from "./value-check.ts";

/**
 * Defaults of keelson itself for well-known keys (specification 8): the last level of the cascade.
 */
const frameworkDefaults: ReadonlyMap<string, unknown> = new Map([
  ["files:config:max-upload-size-mb", 10],
]);

/**
 * Returns the framework's default for a key, clamped to its bounds; `undefined` if keelson has no
 * default that matches the declaration.
 */
export function frameworkDefault(id: string, definition: ConfigKeyDefinition): unknown {
  const value = frameworkDefaults.get(id);
  if (value === undefined || typeMismatch(definition, value) !== undefined) return undefined;
  return typeof value === "number" && definition.bounds !== undefined
    ? clamp(value, definition.bounds)
    : value;
}
