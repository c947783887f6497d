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

/** Type without values; the compiler's message shows the reason. */
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
 * Options of a key (specification 2.1). Without `default` and `computed`, the value may be
 * `undefined`. `read` defaults to `access.authenticated`; `write` to `access.systemAdmin` for a
 * system key, `access.admin` for a tenant key and `access.authenticated` (the own value) for a user
 * key.
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
    /** Whether the value is a secret, stored encrypted. Default `false`. */
    readonly encrypted?: [Computed] extends [never]
      ? Encrypted
      : false | Refused<"a computed key is never encrypted">;
    /**
     * Repeated outside the conditional types, inside which TypeScript would not infer the union.
     */
    readonly options?: readonly Option[];
    /**
     * Former identifier, for example `files:config:max-mb`; after several renames a list, the
     * latest first. Rows under it count until they are rewritten.
     */
    readonly formerly?: string | readonly string[];
    /** Derives the value if no row is stored. If it returns `undefined`, the default counts. */
    computed?(ctx: ComputedContext): Computed | Promise<Computed>; // a method, so that a function of a whole `PipelineContext` is assignable
  };

type Missing<Default, Computed> = [Default] extends [never]
  ? [Computed] extends [never]
    ? undefined
    : never
  : never;

// Spelled out three times, so that editors show the documentation and types of each.

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
 * Declares a key that a tenant's administrator sets (specification 2.1): the level to choose if in
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
 * Declares a key that the end user sets: a personal preference, never a business limit
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
