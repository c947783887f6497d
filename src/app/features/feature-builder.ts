import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AccessRule } from "../../base/identity/access.ts";
import type { MetricOptions } from "../../base/metrics/declared-metric.ts";
import type {
  AnyEvent,
  AnyWrite,
  ChannelHandle,
  EventHandle,
  EventParameter,
  EventPayload,
  JobHandle,
  MetricHandle,
  QueryHandle,
  RateLimitHandle,
  WriteHandle,
} from "../../base/types/handles.ts";
import type { Events, Jobs } from "../../base/types/names.ts";
import type { AnySchema, SchemaInput, SchemaOutput } from "../../base/types/schema.ts";
import type { ConfigKeyHandle, KeyDeclaration } from "../../parts/config/declare/key.ts";
import type { RateLimit } from "../../parts/limits/rate-limit.ts";
import type { EventOptions } from "../handlers/event-options.ts";
import type {
  Awaitable,
  DeclaredOutput,
  OutputOf,
  QueryOptions,
  WriteOptions,
} from "../handlers/handler.ts";
import type { HookOptions } from "../handlers/hooks.ts";
import type {
  ChannelOptions,
  ConsumerOptions,
  EventSchema,
  JobOptions,
} from "../handlers/message-handlers.ts";
import type { ReadContext } from "../handlers/pipeline-context.ts";
import type { Quota, QuotaOptions } from "../handlers/quota.ts";
import type { ReceiveOptions } from "../handlers/receiver.ts";
import type { TableOptions } from "../handlers/table.ts";
import type { DeclaredTable } from "../handlers/table-handle.ts";
import type { IncomingWebhookOptions } from "../handlers/webhook.ts";
import type { Projection, ProjectionOptions } from "../projections/projection.ts";
import type { ScheduleOptions } from "../schedules/schedule.ts";

/**
 * The `r` of `defineFeature`. Most functions return a handle, for `ctx` and for other features. For a
 * feature with a literal name, the compiler checks the entries of `Queries`, `Writes` and `Jobs`
 * against the schemas declared under their names. Once the declaration function has ended, each
 * function throws an Error.
 */
export interface FeatureBuilder<Name extends string = string> {
  /**
   * Declares configuration keys (specification 2.1) and returns their handles. A second call can
   * declare computed keys that read the keys of the first call.
   */
  config<const Keys extends Readonly<Record<string, KeyDeclaration<unknown>>>>(options: {
    readonly keys: Keys;
    // Not `ConfigHandles<Keys>`, so that editors show the handles on hover.
  }): {
    readonly [Key in keyof Keys]: Keys[Key] extends KeyDeclaration<infer Value>
      ? ConfigKeyHandle<Value>
      : never;
  };
  /**
   * Declares a DynamoDB table with string keys, and its indexes. With `tenant: true`, each key
   * starts with a tenant, and handlers reach only the rows of the caller's tenant.
   */
  table<
    const Index extends string = never,
    const Partition extends string = string,
    const Sort extends string = never,
    const Tenant extends boolean = boolean,
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
  ): QueryHandle<StandardSchemaV1.InferInput<Input>, OutputOf<Result, Output, Sent>>;
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
  ): WriteHandle<
    StandardSchemaV1.InferInput<Input>,
    StandardSchemaV1.InferOutput<Input>,
    OutputOf<Result, Output, Sent>
  >;
  /**
   * Declares a webhook that others send, named `<entity>.<operation>`: a write without an access
   * rule, which runs once for each signed event, behind the wall of the event's tenant. A run that
   * throws is a 5xx, and may be sent again. See `docs/webhooks.md`.
   * @example
   * r.webhook("payment.received", {
   *   route: "POST /hooks/stripe",
   *   verify: stripe({ secret: config.stripeSecret }),
   *   input: paymentEvent,
   *   id: (event) => event.id,
   *   tenant: (event) => event.account,
   *   handler: async (ctx, event) => book(ctx, event),
   * });
   */
  webhook<
    const Operation extends string,
    Input extends StandardSchemaV1,
    Output = DeclaredOutput<`${Name}.${Operation}`>,
    const Result = Awaitable<Output>,
    Sent = Output,
  >(
    name: Operation,
    options: IncomingWebhookOptions<Input, Output, Result, `${Name}.${Operation}`, Sent>,
  ): WriteHandle<
    StandardSchemaV1.InferInput<Input>,
    StandardSchemaV1.InferOutput<Input>,
    OutputOf<Result, Output, Sent>
  >;
  /**
   * Extends a write of any feature. All hooks of a write run under the write's claim, in the order of
   * the features, but not when a stored answer is replayed.
   * @example
   * r.hook(files.create, { before: async (ctx, file) => refuseWhereFull(ctx, file) });
   */
  hook<Write extends AnyWrite>(write: Write, options: HookOptions<Write>): void;
  /**
   * Declares an event named `<entity>.<event name>`, for `ctx.publish` (specification 2.8). Its
   * payload, an object without a `requestId`, is validated when published and when consumed.
   * @param options - `{ keepDays: 30 }` or `{ keep: true }` keeps each event for `ctx.events` and
   * projections. A kept event is two of the 100 items of the commit that publishes it. Default:
   * events are deleted once dispatched.
   */
  event<
    const Type extends string,
    Schema extends AnySchema,
    Sent = SchemaInput<Schema>,
    Received = SchemaOutput<Schema>,
  >(
    type: [keyof Events] extends [never] ? string : Type, // cheaper than to infer it
    schema: EventSchema<Schema, Type, Sent, Received>,
    options?: EventOptions,
  ): EventHandle<Sent, Received>;
  /**
   * Declares a consumer with the full name `<feature>.<entity>.<name>`. It handles each event once
   * (specification 6.4), although events arrive repeatedly and in any order.
   * @example
   * r.on(files.created, { name: "scan", handler: async (ctx, { payload }) => scan(ctx, payload.id) });
   */
  on<Event extends AnyEvent, Received = unknown, Sent = unknown>(
    event: EventParameter<Event, Sent, Received>,
    options: ConsumerOptions<EventPayload<Event, Received>>,
  ): void;
  /**
   * Declares a receiver of events that others put on an event bus, named `<entity>.<event name>`. It
   * handles each event once, although events arrive repeatedly and in any order. These events have
   * their own queue, and nothing in it counts as a message of this server. See
   * `docs/received-events.md`.
   * @example
   * r.receive("upload.stored", {
   *   source: "aws.s3",
   *   detailType: "Object Created",
   *   input: z.object({ object: z.object({ key: z.string() }) }),
   *   tenant: ({ detail }) => detail.object.key.split("/")[0],
   *   handler: async (ctx, { detail }) => void (await ctx.enqueue(scan, { key: detail.object.key })),
   * });
   */
  receive<Input extends AnySchema, Detail = SchemaOutput<Input>>(
    name: string,
    options: ReceiveOptions<Input, Detail>,
  ): void;
  /** Declares a job named `<entity>.<operation>`, for `ctx.enqueue` (specification 6.5). */
  job<
    const Operation extends string,
    Input extends AnySchema,
    Payload = SchemaInput<Input>,
    Accepted = SchemaOutput<Input>,
  >(
    name: [keyof Jobs] extends [never] ? string : Operation,
    options: [keyof Jobs] extends [never] // shorter, so that the compiler has less to instantiate
      ? JobOptions<Input, string, Payload, Accepted>
      : JobOptions<Input, `${Name}.${Operation}`, Payload, Accepted>,
  ): JobHandle<Payload>;
  /**
   * Declares a scheduled handler named `<entity>.<operation>`. Only one process runs it at each
   * time.
   */
  schedule(name: string, options: ScheduleOptions): void;
  /**
   * Declares a projection named `<entity>.<name>`: rows of the application's tables, computed from
   * kept events. Each event counts once. The returned handle makes the keys of these rows.
   */
  projection<const Given extends readonly AnyEvent[]>(
    name: string,
    options: ProjectionOptions<Given>,
  ): Projection;
  /**
   * Declares a metric named `<entity>.<name>`. `ctx.metrics.add` takes its handle, or its full name,
   * `<feature>.<entity>.<name>`.
   */
  metric<
    const Labels extends Readonly<Record<string, readonly string[]>> = Readonly<
      Record<never, never>
    >,
  >(
    name: string,
    options?: MetricOptions<Labels>,
  ): MetricHandle<
    [keyof Labels] extends [never]
      ? Readonly<Record<string, undefined>>
      : { readonly [Label in keyof Labels]?: Labels[Label][number] | undefined }
  >;
  /**
   * Declares a quota: how much each tenant may use, in all or in each day or month. Usage counts with
   * the commit of its effect, and never exceeds the limit.
   * @example
   * const storage = r.quota("storage", { limit: config.storageMb, window: "forever", status: 402 });
   */
  quota(name: string, options: QuotaOptions): Quota;
  /** Declares a channel for `ctx.delivery.send`. Every server has `log` and `webhook`. */
  channel<const Channel extends string, Input extends StandardSchemaV1>(
    name: Channel,
    options: ChannelOptions<Input, Channel>,
  ): ChannelHandle<StandardSchemaV1.InferInput<Input>>;
  /**
   * Declares a rate limit for `ctx.rateLimit`. Its name is in kebab case, its full name
   * `<feature>.<name>`.
   * @example
   * const sms = r.rateLimit("sms", { per: "tenant", requests: config.smsPerDay, window: "day" });
   */
  rateLimit(name: string, options: Omit<RateLimit<ReadContext>, "name">): RateLimitHandle;
}

/** The handles of `r.config`, one per key. */
export type ConfigHandles<Keys> = {
  readonly [Name in keyof Keys]: Keys[Name] extends KeyDeclaration<infer Value>
    ? ConfigKeyHandle<Value>
    : never;
};
