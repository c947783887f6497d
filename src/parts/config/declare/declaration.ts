import type { AccessRule } from "../../../base/identity/access.ts";
import { definitionOf } from "./definition.ts";
import type { Bounds, ComputedContext, ConfigType, KeyDeclaration } from "./key.ts";

/** TypeScript type of a key's values; for a select key the union of its options. */
export type ValueOf<Type extends ConfigType, Option extends string> = Type extends "number"
  ? number
  : Type extends "boolean"
    ? boolean
    : Type extends "select"
      ? Option
      : string;

/** Access rules of a key, either under `access` or as direct options. */
type AccessOptions =
  | {
      readonly access?: { readonly read?: AccessRule; readonly write?: AccessRule };
      readonly read?: never;
      readonly write?: never;
    }
  | { readonly access?: never; readonly read?: AccessRule; readonly write?: AccessRule };

declare const reason: unique symbol;

/**
 * Type without values. If an option is refused, the compiler's message shows the reason. It does
 * not exist at run time.
 */
interface Refused<Reason extends string> {
  readonly [reason]: Reason;
}

/**
 * Whether a request may override the key: allowed for a number with bounds, a boolean or a select,
 * never for a text key or a secret.
 */
type PerRequest<Type extends ConfigType, Limits extends Bounds, Encrypted> = [Encrypted] extends [
  false,
]
  ? Type extends "number"
    ? [Limits] extends [never]
      ? false | Refused<"a request sets a number only within bounds: add bounds: { min, max }">
      : boolean
    : Type extends "text"
      ? false | Refused<"a request never sets a text key">
      : boolean
  : false | Refused<"a request never sets an encrypted key">;

/** Requires options on a select key and refuses them on any other key. */
type SelectOptions<Type extends ConfigType, Option extends string> = Type extends "select"
  ? { readonly options: readonly Option[] }
  : { readonly options?: Refused<"only a select key has options"> };

/**
 * Options of a key (specification 2.1). `default` and the result of `computed` have the key's type.
 * Without both, the value may be `undefined`. `read` defaults to `access.authenticated`. `write`
 * defaults to `access.systemAdmin` for a system key, `access.admin` for a tenant key and
 * `access.authenticated` (the user's own value) for a user key. `allowPerRequest` and `encrypted`
 * default to `false`.
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
    /** Value if no level supplies one. */
    readonly default?: Default;
    /** Range of a number, both ends inclusive. */
    readonly bounds?: Type extends "number" ? Limits : Refused<"only a number has bounds">;
    /** Whether a request parameter may set the value. Default `false`. */
    readonly allowPerRequest?: PerRequest<Type, Limits, Encrypted>;
    /** Whether the value is a secret, stored encrypted with the key ring. Default `false`. */
    readonly encrypted?: [Computed] extends [never]
      ? Encrypted
      : false | Refused<"a computed key is never encrypted">;
    /**
     * Values of a select key. The option is repeated outside the conditional types, because
     * TypeScript would not infer the union inside them.
     */
    readonly options?: readonly Option[];
    /**
     * Former identifier of the key, for example `files:config:max-mb`. Rows under it count until
     * they are rewritten. After several renames, a list with the latest name first.
     */
    readonly formerly?: string | readonly string[];
    /** Derives the value if no row is stored. If it returns `undefined`, the default counts. */
    computed?(ctx: ComputedContext): Computed | Promise<Computed>; // a method, so that a function of a whole `PipelineContext` is assignable
  };

/** Adds `undefined` to the type of a read if the key has neither `default` nor `computed`. */
type Missing<Default, Computed> = [Default] extends [never]
  ? [Computed] extends [never]
    ? undefined
    : never
  : never;

// The three signatures are spelled out, so that editors show the documentation and types of each.

/**
 * Declares a key that operators set for all tenants (specification 2.1). Never throws:
 * `buildServer` reports invalid declarations.
 *
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
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>> {
  return Object.freeze({ definition: definitionOf("system", type, options) });
}

/**
 * Declares a key that a tenant's administrator sets (specification 2.1). If in doubt about a
 * variable's level, use this one. Never throws: `buildServer` reports invalid declarations.
 *
 * @example
 * r.config({
 *   keys: { maxUploadSizeMb: createTenantConfig("number", { default: 10, bounds: { min: 1, max: 10_000 } }) },
 * });
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
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>> {
  return Object.freeze({ definition: definitionOf("tenant", type, options) });
}

/**
 * Declares a key that the end user sets: a personal preference, never a business limit
 * (specification 2.1). Never throws: `buildServer` reports invalid declarations.
 *
 * @example
 * r.config({
 *   keys: { listOrder: createUserConfig("select", { options: ["newest", "name"], default: "newest", allowPerRequest: true }) },
 * });
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
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>> {
  return Object.freeze({ definition: definitionOf("user", type, options) });
}
