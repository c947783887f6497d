import { isRecord } from "../../../base/errors/option-table.ts";
import { type AccessRule, access, isAccessRule } from "../../../base/identity/access.ts";
import type {
  Bounds,
  ComputedContext,
  ConfigKeyDefinition,
  ConfigScope,
  ConfigType,
  KeyDeclaration,
} from "./key.ts";

export type ValueOf<Type extends ConfigType, Option extends string> = Type extends "number"
  ? number
  : Type extends "boolean"
    ? boolean
    : Type extends "select"
      ? Option
      : string;

type AccessOptions =
  | {
      /** Both rules in one object, instead of `read` and `write`. */
      readonly access?: {
        /** Same as the option `read`. */
        readonly read?: AccessRule;
        /** Same as the option `write`. */
        readonly write?: AccessRule;
      };
      readonly read?: never;
      readonly write?: never;
    }
  | {
      readonly access?: never;
      /** Callers that may read the value through the operators' API. */
      readonly read?: AccessRule;
      /** Callers that may set and reset the value. */
      readonly write?: AccessRule;
    };

declare const reason: unique symbol;

/** Type that no value has, so that the compiler's error message shows `Reason`. */
interface Refused<Reason extends string> {
  readonly [reason]: Reason;
}

type PerRequest<Type extends ConfigType, Limits extends Bounds, Encrypted> = [Encrypted] extends [
  false,
]
  ? Type extends "number"
    ? [Limits] extends [never]
      ? false | Refused<"a request sets a number only within bounds: add bounds: { min, max }">
      : boolean
    : Type extends "text"
      ? false | Refused<"a request never sets a key of type text">
      : boolean
  : false | Refused<"a request never sets an encrypted key">;

type SelectOptions<Type extends ConfigType, Option extends string> = Type extends "select"
  ? { readonly options: readonly Option[] }
  : { readonly options?: Refused<"only a select key has options"> };

/**
 * Options of a configuration key (specification 2.1). A key with neither `default` nor `computed`
 * may have the value `undefined`. `read` defaults to `access.authenticated`, `write` to
 * `access.systemAdmin` for a system key, `access.admin` for a tenant key and `access.authenticated`
 * for a user key.
 */
export type KeyOptions<
  Type extends ConfigType,
  Option extends string,
  Default,
  Computed,
  Limits extends Bounds,
  Encrypted,
> = AccessOptions &
  SelectOptions<Type, Option> & {
    /** Value of the key if no other level supplies one. */
    readonly default?: Default;
    /** Allowed range of a number, both ends inclusive. */
    readonly bounds?: Type extends "number" ? Limits : Refused<"only a number has bounds">;
    /** Whether a request parameter may replace the value for one request. Default `false`. */
    readonly allowPerRequest?: PerRequest<Type, Limits, Encrypted>;
    /** Whether the value is a secret, stored encrypted. Default `false`. */
    readonly encrypted?: [Computed] extends [never]
      ? Encrypted
      : false | Refused<"a computed key is never encrypted">;
    /** Allowed values of a select key. TypeScript cannot infer them from {@link SelectOptions}. */
    readonly options?: readonly Option[];
    /**
     * Former identifier of a renamed key, such as `files:config:max-mb`; after several renames a
     * list, the latest first. A value stored under it applies until the next write.
     */
    readonly formerly?: string | readonly string[];
    /** Computes the value if no row or app-boot override does; `undefined` leaves the default. */
    computed?(ctx: ComputedContext): Computed | Promise<Computed>; // a method, so that a function that takes a whole `PipelineContext` is assignable
  };

type Missing<Default, Computed> = [Default] extends [never]
  ? [Computed] extends [never]
    ? undefined
    : never
  : never;

// The three functions repeat their signature, so that editors show the documentation of each.

/**
 * Declares a key that operators set for all tenants (specification 2.1). Never throws:
 * `buildServer` reports invalid declarations.
 * @example
 * r.config({ keys: { maintenanceMode: createSystemConfig("boolean", { default: false }) } });
 */
export function createSystemConfig<
  const Type extends ConfigType,
  const Option extends string,
  Default extends NoInfer<ValueOf<Type, Option>> = never,
  const Computed extends NoInfer<ValueOf<Type, Option>> = never,
  Limits extends Bounds = never,
  const Encrypted extends boolean = false,
>(
  type: Type,
  options: KeyOptions<Type, Option, Default, Computed, Limits, Encrypted>,
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>>;
/** Declares a key without options. */
export function createSystemConfig<const Type extends Exclude<ConfigType, "select">>(
  type: Type,
): KeyDeclaration<ValueOf<Type, never> | undefined>;
export function createSystemConfig(type: ConfigType, options?: unknown): KeyDeclaration<never> {
  return Object.freeze({
    definition: definitionOf("system", type, options === undefined ? {} : options),
  });
}

/**
 * Declares a key that each tenant's administrator sets (specification 2.1). Use a tenant key if in
 * doubt. Never throws: `buildServer` reports invalid declarations.
 * @example
 * r.config({ keys: { maxUploadSizeMb: createTenantConfig("number", { default: 10 }) } });
 */
export function createTenantConfig<
  const Type extends ConfigType,
  const Option extends string,
  Default extends NoInfer<ValueOf<Type, Option>> = never,
  const Computed extends NoInfer<ValueOf<Type, Option>> = never,
  Limits extends Bounds = never,
  const Encrypted extends boolean = false,
>(
  type: Type,
  options: KeyOptions<Type, Option, Default, Computed, Limits, Encrypted>,
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>>;
/** Declares a key without options. */
export function createTenantConfig<const Type extends Exclude<ConfigType, "select">>(
  type: Type,
): KeyDeclaration<ValueOf<Type, never> | undefined>;
export function createTenantConfig(type: ConfigType, options?: unknown): KeyDeclaration<never> {
  return Object.freeze({
    definition: definitionOf("tenant", type, options === undefined ? {} : options),
  });
}

/**
 * Declares a key that each end user sets: a personal preference, never a business limit
 * (specification 2.1). Never throws: `buildServer` reports invalid declarations.
 * @example
 * r.config({ keys: { theme: createUserConfig("select", { options: ["light", "dark"] }) } });
 */
export function createUserConfig<
  const Type extends ConfigType,
  const Option extends string,
  Default extends NoInfer<ValueOf<Type, Option>> = never,
  const Computed extends NoInfer<ValueOf<Type, Option>> = never,
  Limits extends Bounds = never,
  const Encrypted extends boolean = false,
>(
  type: Type,
  options: KeyOptions<Type, Option, Default, Computed, Limits, Encrypted>,
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>>;
/** Declares a key without options. */
export function createUserConfig<const Type extends Exclude<ConfigType, "select">>(
  type: Type,
): KeyDeclaration<ValueOf<Type, never> | undefined>;
export function createUserConfig(type: ConfigType, options?: unknown): KeyDeclaration<never> {
  return Object.freeze({
    definition: definitionOf("user", type, options === undefined ? {} : options),
  });
}

const defaultWrite: Readonly<Record<ConfigScope, AccessRule>> = Object.freeze({
  system: access.systemAdmin,
  tenant: access.admin,
  user: access.authenticated,
});

/** Drops invalid options or uses the safer choice; `declared` keeps them for the validators. */
function definitionOf(scope: ConfigScope, type: ConfigType, options: unknown): ConfigKeyDefinition {
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

/** Plain JavaScript may pass anything as a declaration. */
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
