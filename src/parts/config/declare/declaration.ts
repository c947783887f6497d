import type { AccessRule } from "../../../base/identity/access.ts";
import { definitionOf } from "./definition.ts";
import type { Bounds, ComputedContext, ConfigType, KeyDeclaration } from "./key.ts";

export type ValueOf<Type extends ConfigType, Option extends string> = Type extends "number"
  ? number
  : Type extends "boolean"
    ? boolean
    : Type extends "select"
      ? Option
      : string;

type AccessOptions =
  | {
      readonly access?: { readonly read?: AccessRule; readonly write?: AccessRule };
      readonly read?: never;
      readonly write?: never;
    }
  | { readonly access?: never; readonly read?: AccessRule; readonly write?: AccessRule };

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
      ? false | Refused<"a request never sets a text key">
      : boolean
  : false | Refused<"a request never sets an encrypted key">;

type SelectOptions<Type extends ConfigType, Option extends string> = Type extends "select"
  ? { readonly options: readonly Option[] }
  : { readonly options?: Refused<"only a select key has options"> };

/**
 * Options of a configuration key (specification 2.1). A key with neither `default` nor `computed`
 * may have the value `undefined`. `read` defaults to `access.authenticated`. `write` defaults to
 * `access.systemAdmin` for a system key, `access.admin` for a tenant key and `access.authenticated`
 * for a user key: users set their own value.
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
    /**
     * Allowed values of a select key. Declared again here, because TypeScript cannot infer the
     * union of options from the conditional type {@link SelectOptions}.
     */
    readonly options?: readonly Option[];
    /**
     * Former identifier of a renamed key, for example `files:config:max-mb`; after several renames
     * a list, the latest first. A value stored under a former identifier applies until the next
     * write.
     */
    readonly formerly?: string | readonly string[];
    /**
     * Computes the value if neither a stored row nor an app-boot override supplies one. If it
     * returns `undefined`, the default applies.
     */
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
 * Declares a key that each tenant's administrator sets (specification 2.1). Use a tenant key if in
 * doubt. Never throws: `buildServer` reports invalid declarations.
 *
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
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>> {
  return Object.freeze({ definition: definitionOf("tenant", type, options) });
}

/**
 * Declares a key that each end user sets: a personal preference, never a business limit
 * (specification 2.1). Never throws: `buildServer` reports invalid declarations.
 *
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
): KeyDeclaration<ValueOf<Type, Option> | Missing<Default, Computed>> {
  return Object.freeze({ definition: definitionOf("user", type, options) });
}
