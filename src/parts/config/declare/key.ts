import type { AccessRule, User } from "../../../base/identity/access.ts";
import type { Logger } from "../../../base/log/logger.ts";
import type { RequestView } from "../../../base/request/request-view.ts";
import type { Trace } from "../../../base/request/trace.ts";
import type { Database } from "../../../base/types/database.ts";
import type { AnyQuery, QueryOf } from "../../../base/types/handles.ts";

/** Type of a key's values (specification 2.1). */
export type ConfigType = "number" | "boolean" | "select" | "text";

/** Narrowest level at which a key may be set at run time (specification 2.1). */
export type ConfigScope = "system" | "tenant" | "user";

/** Range of a number, both ends inclusive. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** Properties of a declared key, available as the `definition` of its handle. */
export interface ConfigKeyDefinition {
  readonly scope: ConfigScope;
  readonly type: ConfigType;
  readonly default?: unknown;
  readonly bounds?: Bounds;
  readonly options?: readonly string[];
  /** Former identifiers of the key, the latest first. */
  readonly formerly?: readonly string[];
  /**
   * Computes the value if no row and no app-boot override supplies one. A method, so that a function
   * that takes a whole `PipelineContext` is assignable.
   */
  computed?(ctx: ComputedContext): unknown;
  /** Rule for reading the value through the operators' API. */
  readonly read: AccessRule;
  /** Rule for setting the value through the operators' API. */
  readonly write: AccessRule;
  readonly allowPerRequest: boolean;
  readonly encrypted: boolean;
  /** Type and options as declared, for the validators: plain JavaScript may pass anything. */
  readonly declared: { readonly type: unknown; readonly options: unknown };
}

declare const valueType: unique symbol;

/**
 * Declared key for `r.config({ keys })`, created by `createSystemConfig`, `createTenantConfig` or
 * `createUserConfig`.
 */
export interface KeyDeclaration<Value> {
  readonly definition: ConfigKeyDefinition;
  readonly [valueType]?: () => Value;
}

/** Handle of a declared key: `ctx.config(handle)` returns a `Value` (specification 2.1). */
export interface ConfigKeyHandle<Value> {
  /** Identifier of the form `<feature>:config:<kebab-case-name>`. */
  readonly id: string;
  readonly definition: ConfigKeyDefinition;
  readonly [valueType]?: () => Value;
}

export interface RegisteredConfigKey {
  readonly id: string;
  readonly feature: string;
  /** Name in the declaration, for example `maxUploadSizeMb`. */
  readonly name: string;
  readonly definition: ConfigKeyDefinition;
}

export interface ConfigKeyRegistry {
  readonly configKeys: ReadonlyMap<string, RegisteredConfigKey>;
}

/** Context of a `computed` function: read-only members of the `ctx` that reads the key. */
export interface ComputedContext extends ConfigReader {
  readonly db: Database;
  readonly user: User;
  readonly log: Logger;
  readonly requestId: string;
  readonly trace: Trace;
  readonly query: <Query extends AnyQuery>(
    query: Query,
    input: QueryOf<Query>["input"],
  ) => Promise<QueryOf<Query>["output"]>;
  readonly signal?: AbortSignal;
  readonly request?: RequestView;
}

export interface ConfigReader {
  readonly config: <Value>(handle: ConfigKeyHandle<Value>) => Promise<Value>;
}

/** `files:config:max-upload-size-mb` for `maxUploadSizeMb` of `files` (specification 2.1). */
export function configKeyId(feature: string, keyName: string): string {
  return `${feature}:config:${kebabCase(keyName)}`;
}

export function isKeyId(value: unknown): value is string {
  return (
    typeof value === "string" && /^(?=.{1,256}$)[a-z][a-z0-9-]*:config:[a-z][a-z0-9-]*$/.test(value)
  );
}

export function hasKebabCase(keyName: string): boolean {
  return /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(kebabCase(keyName));
}

/** Consecutive capitals are one word: `max-url-length` for `maxURLLength`. */
function kebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();
}

export function successorOf(
  id: string,
  { configKeys }: ConfigKeyRegistry,
): RegisteredConfigKey | undefined {
  return [...configKeys.values()].find(({ definition }) => definition?.formerly?.includes(id));
}
