import { type AccessRule, access, isAccessRule } from "../../../base/identity/access.ts";
import type { Bounds, ConfigKeyDefinition, ConfigScope, ConfigType } from "./key.ts";

type Unchecked = Readonly<Record<string, unknown>>;

const defaultWrite: Readonly<Record<ConfigScope, AccessRule>> = Object.freeze({
  system: access.systemAdmin,
  tenant: access.admin,
  user: access.authenticated,
});

/**
 * Drops an invalid option or replaces it by the safer choice. `declared` keeps the original for the
 * validators.
 */
export function definitionOf(
  scope: ConfigScope,
  type: ConfigType,
  options: unknown,
): ConfigKeyDefinition {
  const given: Unchecked = isObject(options) ? Object.freeze({ ...options }) : {};
  const { read, write } = isObject(given["access"]) ? given["access"] : given;
  const { bounds, options: selectable, computed } = given;
  const formerly = [given["formerly"] ?? []].flat();
  return Object.freeze({
    scope,
    type,
    ...(given["default"] === undefined ? {} : { default: given["default"] }),
    ...(isBounds(bounds) ? { bounds: Object.freeze({ min: bounds.min, max: bounds.max }) } : {}),
    ...(isStrings(selectable) ? { options: Object.freeze([...selectable]) } : {}),
    ...(isStrings(formerly) && formerly.length > 0
      ? { formerly: Object.freeze([...new Set(formerly)]) }
      : {}),
    ...(isComputed(computed) ? { computed } : {}),
    read: isAccessRule(read) ? read : access.authenticated,
    write: isAccessRule(write) ? write : defaultWrite[scope],
    allowPerRequest: given["allowPerRequest"] === true,
    encrypted: given["encrypted"] !== undefined && given["encrypted"] !== false,
    declared: Object.freeze({ type, options: isObject(options) ? given : options }),
  });
}

/** Plain JavaScript may pass anything as a declaration. */
export function isDefinition(value: unknown): value is ConfigKeyDefinition {
  return isObject(value) && isObject(value["declared"]);
}

export function isObject(value: unknown): value is Unchecked {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isBounds(value: unknown): value is Bounds {
  return isObject(value) && Number.isFinite(value["min"]) && Number.isFinite(value["max"]);
}

export function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isComputed(value: unknown): value is NonNullable<ConfigKeyDefinition["computed"]> {
  return typeof value === "function";
}
