import type { AccessRule } from "../../../base/identity/access.ts";
import type { User } from "../../../base/identity/user.ts";
import type { Logger } from "../../../base/log/logger.ts";
import type { RequestView } from "../../../base/request/request-view.ts";
import type { Trace } from "../../../base/request/trace.ts";
import type { Database } from "../../../base/types/database.ts";
import type { Queries } from "../../../base/types/names.ts";

/** The type of a key's values (specification 2.1). */
export type ConfigType = "number" | "boolean" | "select" | "text";

/** The narrowest level at which a key may be set at run time (specification 2.1). */
export type ConfigScope = "system" | "tenant" | "user";

/** The range of a number, both ends inclusive. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** A key's declaration, as a handle carries it in `definition`. */
export interface ConfigKeyDefinition {
  readonly scope: ConfigScope;
  readonly type: ConfigType;
  readonly default?: unknown;
  readonly bounds?: Bounds;
  /** The values a select key may have. */
  readonly options?: readonly string[];
  /** The identifiers that the key had before, the last one first. */
  readonly formerly?: readonly string[];
  /** A method, so that a function of a whole `PipelineContext` fits: at run time it gets one. */
  computed?(ctx: ComputedContext): unknown;
  /** Who may read the value through the operators' API. */
  readonly read: AccessRule;
  /** Who may set the value through the operators' API. */
  readonly write: AccessRule;
  readonly allowPerRequest: boolean;
  readonly encrypted: boolean;
  /** The type and the options as they were written, for the validators: in plain JavaScript they may be anything. */
  readonly declared: { readonly type: unknown; readonly options: unknown };
}

/** The type of a key's values, carried by declarations and handles; it does not exist at run time. */
declare const valueType: unique symbol;

/** A key, as the three factories declare it for `r.config({ keys })`. */
export interface KeyDeclaration<Value> {
  readonly definition: ConfigKeyDefinition;
  readonly [valueType]?: () => Value;
}

/** A declared key: `ctx.config(handle)` gives a `Value` (specification 2.1). */
export interface ConfigKeyHandle<Value> {
  /** `<feature>:config:<kebab-case-name>`. */
  readonly id: string;
  readonly definition: ConfigKeyDefinition;
  readonly [valueType]?: () => Value;
}

/** A key as the registry keeps it. */
export interface RegisteredConfigKey {
  /** `files:config:max-upload-size-mb`. */
  readonly id: string;
  /** The feature that declares it: `files`. */
  readonly feature: string;
  /** Its name in the declaration: `maxUploadSizeMb`. */
  readonly name: string;
  readonly definition: ConfigKeyDefinition;
}

/** The part of a registry that concerns configuration. */
export interface ConfigKeyRegistry {
  /** By key identifier. */
  readonly configKeys: ReadonlyMap<string, RegisteredConfigKey>;
}

/** The parts of a `ctx` that a `computed` function gets: what reads. The request is the one that reads the key. */
export interface ComputedContext extends ConfigReader {
  readonly db: Database;
  readonly user: User;
  readonly log: Logger;
  readonly requestId: string;
  readonly trace: Trace;
  readonly query: <Name extends keyof Queries>(
    name: Name,
    input: Queries[Name]["input"],
  ) => Promise<Queries[Name]["output"]>;
  readonly signal?: AbortSignal;
  readonly request?: RequestView;
}

/** The part of a `ctx` that reads configuration. */
export interface ConfigReader {
  readonly config: <Value>(handle: ConfigKeyHandle<Value>) => Promise<Value>;
}
