import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { BootProblem } from "../../base/errors/boot.ts";
import type { AccessRule } from "../../base/identity/access.ts";
import type { Events, Writes } from "../../base/types/names.ts";
import type {
  ConfigKeyHandle,
  KeyDeclaration,
  RegisteredConfigKey,
} from "../../parts/config/declare/key.ts";
import { configKeys, handler, type RawOptions } from "./declare.ts";
import { hook } from "./declare-hook.ts";
import { channel, consumer, event, job } from "./declare-messages.ts";
import { table } from "./declare-table.ts";
import type {
  Awaitable,
  DeclaredOutput,
  HandlerDeclaration,
  QueryOptions,
  WriteOptions,
} from "./handler.ts";
import type { HookDeclaration, HookOptions } from "./hooks.ts";
import type {
  ChannelDeclaration,
  ChannelOptions,
  ConsumerDeclaration,
  EventDeclaration,
  EventOf,
  EventOptions,
  EventSchema,
  JobDeclaration,
  JobOptions,
} from "./message-handlers.ts";
import { type MetricOptions, metric, type OwnMetricDeclaration } from "./metric.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import {
  type Projection,
  type ProjectionOptions,
  projection,
  projectionConsumers,
  projectionHandle,
} from "./projection.ts";
import type { ProjectionDeclaration } from "./projection-declaration.ts";
import { type ScheduleDeclaration, type ScheduleOptions, schedule } from "./schedule.ts";
import type { TableDeclaration, TableOptions } from "./table.ts";
import { type DeclaredTable, tableHandle } from "./table-handle.ts";
import { type FeatureOptions, featureUses, type TableUse } from "./uses.ts";

export interface FeatureDeclarations {
  readonly name: string;
  readonly configKeys: readonly RegisteredConfigKey[];
  readonly handlers: readonly HandlerDeclaration[];
  readonly tables: readonly TableDeclaration[];
  readonly events: readonly EventDeclaration[];
  readonly consumers: readonly ConsumerDeclaration[];
  readonly jobs: readonly JobDeclaration[];
  readonly channels: readonly ChannelDeclaration[];
  readonly projections: readonly ProjectionDeclaration[];
  readonly schedules: readonly ScheduleDeclaration[];
  /** Features whose tables its handlers use in addition to its own, by name. */
  readonly uses: ReadonlyMap<string, TableUse>;
  readonly hooks: readonly HookDeclaration[];
  readonly metrics: readonly OwnMetricDeclaration[];
  /** Problems of the declarations. `buildServer` reports all problems together. */
  readonly problems: readonly BootProblem[];
}

/** The handles that `r.config` returns, one per key. */
export type ConfigHandles<Keys> = {
  readonly [Name in keyof Keys]: Keys[Name] extends KeyDeclaration<infer Value>
    ? ConfigKeyHandle<Value>
    : never;
};

/**
 * The `r` of a feature's declaration. If the feature's name is known, the compiler checks each
 * entry of `Queries`, `Writes` and `Jobs` against the schema declared under that name.
 */
export interface FeatureBuilder<Name extends string = string> {
  /**
   * Declares configuration keys (specification 2.1) and returns their handles. Can be called
   * several times, for example to declare a computed key that reads keys from an earlier call.
   */
  config<const Keys extends Readonly<Record<string, KeyDeclaration<unknown>>>>(options: {
    readonly keys: Keys;
    // Expanded instead of `ConfigHandles<Keys>`, so that editors show the handles on hover.
  }): {
    readonly [Key in keyof Keys]: Keys[Key] extends KeyDeclaration<infer Value>
      ? ConfigKeyHandle<Value>
      : never;
  };
  /**
   * Declares a DynamoDB table with string keys, and its indexes. With `tenant: true`, each key
   * starts with its tenant, and handlers reach only the rows of the caller's tenant.
   */
  table<
    const Index extends string = never,
    const Partition extends string = string,
    const Sort extends string = never,
    const Tenant extends boolean = false,
  >(
    name: string,
    options: TableOptions<Index, Partition, Sort, Tenant>,
  ): DeclaredTable<Index, Partition, Sort, Tenant>;
  /** Declares a handler that only reads, named `<entity>.<operation>`. */
  query<
    const Operation extends string,
    Input extends StandardSchemaV1,
    Output = DeclaredOutput<`${Name}.${Operation}`>,
    const Result = Awaitable<Output>, // what an editor completes
    Rule extends AccessRule = AccessRule,
    Sent = Output,
  >(
    name: Operation,
    options: QueryOptions<Input, Output, Result, Rule, `${Name}.${Operation}`, Sent>,
  ): void;
  /** Declares a handler that changes something, named `<entity>.<operation>`. */
  write<
    const Operation extends string,
    Input extends StandardSchemaV1,
    Output = DeclaredOutput<`${Name}.${Operation}`>,
    const Result = Awaitable<Output>,
    Rule extends AccessRule = AccessRule,
    Sent = Output,
  >(
    name: Operation,
    options: WriteOptions<Input, Output, Result, Rule, `${Name}.${Operation}`, Sent>,
  ): void;
  /**
   * Hooks into a write of any feature of the server, by its full name. All hooks of a write run
   * under its claim, in the order of the features. A replay runs no hooks.
   *
   * @example
   * r.hook("files.file.create", { before: async (ctx, file) => refuseWhereFull(ctx, file) });
   */
  hook<Write extends keyof Writes>(write: Write, options: HookOptions<Write>): void;
  /**
   * Declares an event, `<entity>.<event name>`, for `ctx.publish` (specification 2.8). Its payload
   * is an object without a `requestId`. keelson checks it when it is published and when it is
   * consumed.
   *
   * @param options - `{ keepDays: 30 }` or `{ keep: true }` stores each event in the commit that
   * publishes it, for `ctx.events` and projections. A kept event takes two of the commit's 100
   * items. Default: deleted after it is dispatched.
   */
  event<const Type extends string>(
    type: Type,
    schema: EventSchema<Type>,
    options?: EventOptions,
  ): void;
  /**
   * Declares a consumer of an event, named `<feature>.<entity>.<name>`. Each consumer handles an
   * event once (specification 6.4), although events can be delivered several times and in any
   * order.
   */
  on<Type extends keyof Events>(
    type: Type,
    name: string,
    handler: (ctx: PipelineContext, event: EventOf<Type>) => Awaitable<unknown>,
  ): void;
  /** Declares a job, `<entity>.<operation>`, for `ctx.enqueue` (specification 6.5). */
  job<const Operation extends string, Input extends StandardSchemaV1>(
    name: Operation,
    options: JobOptions<Input, `${Name}.${Operation}`>,
  ): void;
  /**
   * Declares a scheduled handler, `<entity>.<operation>`. Each fire runs once across all processes.
   */
  schedule(name: string, options: ScheduleOptions): void;
  /**
   * Declares a projection, `<entity>.<name>`: rows in the application's tables, computed from kept
   * events. Each event counts once. Returns a handle that makes the keys of these rows.
   */
  projection(name: string, options: ProjectionOptions): Projection;
  /**
   * Declares a metric, `<entity>.<name>`. `ctx.metrics.add` takes its full name:
   * `<feature>.<entity>.<name>`.
   */
  metric(name: string, options?: MetricOptions): void;
  /** Declares a channel for `ctx.delivery.send`. Every server already has `log` and `webhook`. */
  channel<const Channel extends string, Input extends StandardSchemaV1>(
    name: Channel,
    options: ChannelOptions<Input, Channel>,
  ): void;
}

const declarationsOf = Symbol.for("keelson.feature");

/** A feature: the properties that `declare` returned, and its declarations. */
export type Feature<Members = unknown, Name extends string = string> = Members & {
  readonly name: Name;
  readonly [declarationsOf]: FeatureDeclarations;
};

/**
 * Name in the type of a feature with exports. All features without exports share one type, so an
 * array inferred from one of them accepts the others.
 */
type NameOf<Members, Name extends string> = [keyof Members] extends [never] ? string : Name;

/**
 * Defines a feature. `declare` runs immediately, and the properties of its result become properties
 * of the feature. `buildServer` reports all invalid declarations together.
 *
 * @throws TypeError if `declare` returns a property named `name`.
 * @example
 * const hello = defineFeature("hello", (r) => {
 *   r.query("greeting.show", {
 *     route: "GET /hello",
 *     access: access.everyone,
 *     handler: async () => ({ text: "hello" }),
 *   });
 * });
 */
export function defineFeature<
  const Members extends object = object,
  const Name extends string = string,
>(
  name: Name,
  // biome-ignore lint/suspicious/noConfusingVoidType: a declaration that exports nothing returns nothing
  declare: (r: FeatureBuilder<Name>) => Members | void,
  options?: FeatureOptions,
): Feature<Members, NameOf<Members, Name>> {
  const keys: RegisteredConfigKey[] = [];
  const handlers: HandlerDeclaration[] = [];
  const tables: TableDeclaration[] = [];
  const events: EventDeclaration[] = [];
  const consumers: ConsumerDeclaration[] = [];
  const jobs: JobDeclaration[] = [];
  const channels: ChannelDeclaration[] = [];
  const projections: ProjectionDeclaration[] = [];
  const schedules: ScheduleDeclaration[] = [];
  const hooks: HookDeclaration[] = [];
  const metrics: OwnMetricDeclaration[] = [];
  const problems: BootProblem[] = [];
  const report = (problem: Omit<BootProblem, "feature">) =>
    problems.push({ feature: String(name), ...problem });

  const builder: FeatureBuilder<Name> = {
    config: (options) => {
      const registered = configKeys(name, options, report);
      keys.push(...registered);
      const handles: Record<string, ConfigKeyHandle<unknown>> = {};
      for (const { id, name: keyName, definition } of registered)
        handles[keyName] = Object.freeze({ id, definition });
      // Safe: each declared key has one handle under its name. The value type is a phantom.
      return Object.freeze(handles) as ConfigHandles<typeof options.keys>;
    },
    table: (tableName, options) => {
      const declared = table(tableName, options as unknown as RawOptions, report);
      tables.push(declared);
      // Safe: only a table with tenants has tenant keys.
      return tableHandle(declared) as never;
    },
    // Callers in plain JavaScript can pass anything, so the functions below read raw options and
    // report problems.
    query: (handlerName, options) => {
      handlers.push(handler("query", name, handlerName, options as unknown as RawOptions, report));
    },
    write: (handlerName, options) => {
      handlers.push(handler("write", name, handlerName, options as unknown as RawOptions, report));
    },
    hook: (write, options) =>
      void hooks.push(hook(name, write, options as unknown as RawOptions, report)),
    event: (type, schema, options) => void events.push(event(name, type, schema, options, report)),
    on: (type, consumerName, run) =>
      void consumers.push(consumer(name, type, consumerName, run, report)),
    job: (jobName, options) =>
      void jobs.push(job(name, jobName, options as unknown as RawOptions, report)),
    schedule: (scheduleName, options) => {
      schedules.push(schedule(name, scheduleName, options as unknown as RawOptions, report));
    },
    projection: (projectionName, options) => {
      const declared = projection(name, projectionName, options as unknown as RawOptions, report);
      projections.push(declared);
      consumers.push(...projectionConsumers(declared));
      return projectionHandle(declared);
    },
    metric: (metricName, options) =>
      void metrics.push(metric(name, metricName, options as unknown as RawOptions, report)),
    channel: (channelName, options) => {
      channels.push(channel(name, channelName, options as unknown as RawOptions, report));
    },
  };
  if (typeof name !== "string" || !/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
    report({
      key: String(name),
      rule: "feature-name",
      message: `feature name ${JSON.stringify(name)} is not in kebab case`,
      fix: "name it with lower-case letters, digits and hyphens, beginning with a letter",
    });
  }
  const members = declare(Object.freeze(builder));
  if (members instanceof Promise) {
    report({
      key: name,
      rule: "feature-async",
      message: "its declaration is asynchronous, so what it declares may come too late",
      fix: "declare everything in a function that is not async",
    });
  }
  if (members !== undefined && "name" in members) {
    throw new TypeError(
      `defineFeature("${name}"): the declaration returns a property "name", which is the feature's own; rename it`,
    );
  }
  const declarations: FeatureDeclarations = {
    name,
    configKeys: keys,
    handlers,
    tables,
    events,
    consumers,
    jobs,
    channels,
    projections,
    schedules,
    uses: featureUses(options as RawOptions | undefined, report),
    hooks,
    metrics,
    problems,
  };
  // Safe: the literal has exactly the members of `Feature<Members, Name>`.
  return Object.freeze({ ...members, name, [declarationsOf]: declarations }) as unknown as Feature<
    Members,
    NameOf<Members, Name>
  >;
}

/**
 * Returns the declarations of a feature, or `undefined` for a value that `defineFeature` did not
 * create.
 */
export function featureDeclarations(feature: unknown): FeatureDeclarations | undefined {
  if (typeof feature !== "object" || feature === null) return undefined;
  return (feature as Partial<Feature>)[declarationsOf];
}
