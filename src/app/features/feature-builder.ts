import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AccessRule } from "../../base/identity/access.ts";
import type { MetricOptions } from "../../base/metrics/declared-metric.ts";
import type { Events, Writes } from "../../base/types/names.ts";
import type { ConfigKeyHandle, KeyDeclaration } from "../../parts/config/declare/key.ts";
import type { Awaitable, DeclaredOutput, QueryOptions, WriteOptions } from "../handlers/handler.ts";
import type { HookOptions } from "../handlers/hooks.ts";
import type {
  ChannelOptions,
  EventOf,
  EventOptions,
  EventSchema,
  JobOptions,
} from "../handlers/message-handlers.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { TableOptions } from "../handlers/table.ts";
import type { DeclaredTable } from "../handlers/table-handle.ts";
import type { Projection, ProjectionOptions } from "../projections/projection.ts";
import type { ScheduleOptions } from "../schedules/schedule.ts";

/**
 * The `r` of `defineFeature`. For a feature with a literal name, the compiler checks the entries of
 * `Queries`, `Writes` and `Jobs` against the schemas declared under their names.
 */
export interface FeatureBuilder<Name extends string = string> {
  /**
   * Declares configuration keys (specification 2.1) and returns their handles. A further call can
   * declare computed keys that read these.
   */
  config<const Keys extends Readonly<Record<string, KeyDeclaration<unknown>>>>(options: {
    readonly keys: Keys;
    // Not `ConfigHandles<Keys>`: editors show this form on hover.
  }): {
    readonly [Key in keyof Keys]: Keys[Key] extends KeyDeclaration<infer Value>
      ? ConfigKeyHandle<Value>
      : never;
  };
  /**
   * Declares a DynamoDB table with string keys, and its indexes. With `tenant: true`, keys start
   * with their tenant, and handlers reach only the caller's.
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
  /** Declares a handler that only reads, `<entity>.<operation>`. */
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
  /** Declares a handler that changes something, `<entity>.<operation>`. */
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
   * Hooks into a write of any feature, by its full name. All hooks of a write run under its claim,
   * in the order of the features, but not in a replay.
   * @example
   * r.hook("files.file.create", { before: async (ctx, file) => refuseWhereFull(ctx, file) });
   */
  hook<Write extends keyof Writes>(write: Write, options: HookOptions<Write>): void;
  /**
   * Declares an event, `<entity>.<event name>`, for `ctx.publish` (specification 2.8). Its payload,
   * an object without a `requestId`, is checked when published and when consumed.
   * @param options - `{ keepDays: 30 }` or `{ keep: true }` stores each event in the commit that
   * publishes it, for `ctx.events` and projections, as two of the commit's 100 items. Default:
   * deleted once dispatched.
   */
  event<const Type extends string>(
    type: Type,
    schema: EventSchema<Type>,
    options?: EventOptions,
  ): void;
  /**
   * Declares a consumer, `<feature>.<entity>.<name>`. It handles each event once (specification
   * 6.4), although events arrive repeatedly and in any order.
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
  /** Declares a scheduled handler, `<entity>.<operation>`. Each fire runs once across processes. */
  schedule(name: string, options: ScheduleOptions): void;
  /**
   * Declares a projection, `<entity>.<name>`: rows of the application's tables, computed from kept
   * events, each counted once. Its handle makes the keys of these rows.
   */
  projection(name: string, options: ProjectionOptions): Projection;
  /**
   * Declares a metric, `<entity>.<name>`, for `ctx.metrics.add` by its full name,
   * `<feature>.<entity>.<name>`.
   */
  metric(name: string, options?: MetricOptions): void;
  /** Declares a channel for `ctx.delivery.send`. Every server has `log` and `webhook`. */
  channel<const Channel extends string, Input extends StandardSchemaV1>(
    name: Channel,
    options: ChannelOptions<Input, Channel>,
  ): void;
}

/** The handles of `r.config`, one per key. */
export type ConfigHandles<Keys> = {
  readonly [Name in keyof Keys]: Keys[Name] extends KeyDeclaration<infer Value>
    ? ConfigKeyHandle<Value>
    : never;
};
