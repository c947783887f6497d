import type { ConfigKeyDefinition } from "./key.ts";
import { clamp, typeMismatch } from "./value-check.ts";

/** keelson's own defaults (specification 8), the last level of the cascade. */
const frameworkDefaults: ReadonlyMap<string, unknown> = new Map([
  ["files:config:max-upload-size-mb", 10],
]);

export function frameworkDefault(id: string, definition: ConfigKeyDefinition): unknown {
  const value = frameworkDefaults.get(id);
  if (value === undefined || typeMismatch(definition, value) !== undefined) return undefined;
  return typeof value === "number" && definition.bounds !== undefined
    ? clamp(value, definition.bounds)
    : value;
}
