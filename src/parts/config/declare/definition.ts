import { isRecord } from "../../../base/errors/option-table.ts";
import { type AccessRule, access, isAccessRule } from "../../../base/identity/access.ts";
import type { Bounds, ConfigKeyDefinition, ConfigScope, ConfigType } from "./key.ts";

const defaultWrite: Readonly<Record<ConfigScope, AccessRule>> = Object.freeze({
  system: access.systemAdmin,
  tenant: access.admin,
  user: access.authenticated,
});

/**
 * Creates the definition of a key. An invalid option is dropped or replaced by the safer choice;
 * `declared` keeps the original options for the validators.
 */
export function definitionOf(
  scope: ConfigScope,
  type: ConfigType,
  options: unknown,
): ConfigKeyDefinition {
  const given: Readonly<Record<string, unknown>> = isRecord(options)
    ? Object.freeze({ ...options })
    : {};
  const { read, write } = isRecord(given["access"]) ? given["access"] : given;
  const { bounds, options: selectable, computed } = given;
  const formerly = [given["formerly"] ?? []].flat();
  return Object.freeze({
    scope,
    type,
    ...(given["default"] !== undefined && { default: given["default"] }),
    ...(isBounds(bounds) && { bounds: Object.freeze({ min: bounds.min, max: bounds.max }) }),
    ...(isStrings(selectable) && { options: Object.freeze([...selectable]) }),
    ...(isStrings(formerly) &&
      formerly.length > 0 && { formerly: Object.freeze([...new Set(formerly)]) }),
    ...(isComputed(computed) && { computed }),
    read: isAccessRule(read) ? read : access.authenticated,
    write: isAccessRule(write) ? write : defaultWrite[scope],
    allowPerRequest: given["allowPerRequest"] === true,
    encrypted: given["encrypted"] !== undefined && given["encrypted"] !== false,
    declared: Object.freeze({ type, options: isRecord(options) ? given : options }),
  });
}

/** Needed because plain JavaScript may pass anything as a declaration. */
export function isDefinition(value: unknown): value is ConfigKeyDefinition {
  return isRecord(value) && isRecord(value["declared"]);
}

export function isBounds(value: unknown): value is Bounds {
  return isRecord(value) && Number.isFinite(value["min"]) && Number.isFinite(value["max"]);
}

export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isComputed(value: unknown): value is NonNullable<ConfigKeyDefinition["computed"]> {
  return typeof value === "function";
}
