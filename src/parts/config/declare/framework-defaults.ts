import type { ConfigKeyDefinition } from "./key.ts";
import { clamp, typeMismatch } from "./value-check.ts";

/** What keelson itself has for well-known keys (specification 8): the last level of the cascade. */
const frameworkDefaults: ReadonlyMap<string, unknown> = new Map([
  ["files:config:max-upload-size-mb", 10],
]);

/** The framework's default for a key, inside its bounds; `undefined` where there is none that fits the declaration. */
export function frameworkDefault(id: string, definition: ConfigKeyDefinition): unknown {
  const value = frameworkDefaults.get(id);
  if (value === undefined || typeMismatch(definition, value) !== undefined) return undefined;
  return typeof value === "number" && definition.bounds !== undefined
    ? clamp(value, definition.bounds)
    : value;
}
