import type { User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { MetricsAccessor } from "../../base/metrics/metrics.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import type { Trace } from "../../base/request/trace.ts";
import type { CommitItem, Database } from "../../base/types/database.ts";
import type {
  AnyChannel,
  AnyEvent,
  AnyJob,
  AnyQuery,
  EventParameter,
  EventPayload,
  JobParameter,
  JobPayload,
  MessageOf,
  QueryOf,
  ReceivedOf,
} from "../../base/types/handles.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { ConfigOptions } from "../../parts/config/read/request-parameter.ts";
import type { EventRange, KeptEvent } from "../../parts/messages/kept-events.ts";
import type { IfUnknown } from "../../parts/once/step.ts";
import type { RateLimitMember } from "./rate-limit.ts";

/** Options of every effect. */
export interface EffectOptions {
  /**
   * With `true`, the effect joins the commit of the run: it is stored by `commit`, or when the
   * handler returns, and dropped if the commit fails, or the handler throws or answers 400 or above.
   * With `false`, it happens immediately, whatever becomes of the run. Default `true`.
   */
  readonly afterCommit?: boolean;
}

/** Options of `ctx.delivery.send`. */
export interface SendOptions extends EffectOptions {
  /**
   * Deduplicates messages with the same channel, tenant and key within a day. Default: each call is
   * a separate message, except in a retried run.
   */
  readonly key?: string;
}

/** Sends messages through channels, each as a job (specification 2.6). */
export interface DeliveryAccessor {
  /**
   * Sends a message through a channel, at least once. It joins the commit of the run, unless
   * `options.afterCommit` is `false`.
   * @returns the delivery's ID, which the channel's `send` receives.
   * @throws TypeError if the message does not match the channel's `input`; Error for an undeclared
   * channel, after `commit` has started, and in a query.
   */
  readonly send: <Channel extends AnyChannel>(
    channel: Channel,
    message: MessageOf<Channel>,
    options?: SendOptions,
  ) => Promise<{ readonly deliveryId: string }>;
}

/** Options of `ctx.enqueue`. */
export interface EnqueueOptions extends EffectOptions {
  /** Delay in seconds, up to a year (31,536,000). Default: none. */
  readonly delaySeconds?: number;
  /** Time at which the job is due, up to a year ahead. A past time means now. */
  readonly at?: Date;
  /** Tenant of the job and of everything that it causes. Only in system runs. Default: none. */
  readonly tenantId?: string;
}

/** Result of `ctx.enqueue`. */
export interface EnqueuedJob {
  readonly jobId: string;
}

/** Options of `ctx.step`. */
export interface StepOptions {
  /**
   * If the outcome of an earlier call is unknown, `refuse`, the default, throws an
   * `UnknownOutcomeError` until `keelson steps resolve` records the outcome. `retry` calls again
   * with the same key, for providers that deduplicate by key.
   */
  readonly ifUnknown?: IfUnknown;
}

/** Result of a step after a JSON round trip: dates are strings, functions are dropped. */
export type StepResult<Result> = Result extends string | number | boolean | null | undefined
  ? Result
  : Result extends { toJSON(): infer Text }
    ? StepResult<Text>
    : Result extends (...args: never) => unknown
      ? undefined
      : Result extends bigint | symbol
        ? never
        : { readonly [Name in keyof Result]: StepResult<Result[Name]> };

/**
 * Members that are created when they are first used. TypeScript leaves the accessors of a class out
 * of `{ ...ctx }`, which has only own properties.
 */
declare abstract class ReadMembers {
  /**
   * Returns a database that reaches the rows of every tenant, and logs `tenant.crossed` with the
   * reason. Only for `systemAdmin` and for system runs, which have no tenant and no request.
   * @throws AccessDeniedError (403) for any other caller; TypeError without a reason.
   * @example
   * const db = ctx.acrossTenants("monthly report");
   */
  abstract get acrossTenants(): (reason: string) => Database;
  /** Trace of the run, with the headers for outgoing calls. */
  abstract get trace(): Trace;
  /**
   * Reads the kept events of the caller's tenant in pages, oldest first, until `signal` aborts.
   * An event whose commit is still in flight can appear in a later read, with an earlier time.
   * @throws Error on the first read if the type is not kept or the run has no tenant; TypeError for
   * an invalid range.
   * @example
   * for await (const { keptAt, payload } of ctx.events("file.created", { since: yesterday })) count(payload);
   */
  abstract get events(): <Event extends AnyEvent>(
    event: Event,
    range?: EventRange,
  ) => AsyncIterable<KeptEvent<ReceivedOf<Event>>>;
  /**
   * Records metrics.
   * @example
   * ctx.metrics.add("shop.order.placed", 1, { plan: "pro" });
   */
  abstract get metrics(): MetricsAccessor;
}

declare abstract class DeliveryMember {
  abstract get delivery(): DeliveryAccessor;
}

declare abstract class JobMembers {
  /**
   * Enqueues a job (specification 6.5), which runs at least once. It joins the commit of the run,
   * unless `options.afterCommit` is `false`. The queue drops a job with the same name, tenant and
   * payload as one of the last 5 minutes.
   *
   * With `delaySeconds` or `at`, the job is not deduplicated, and keelson sends it within a minute
   * after it is due.
   * @returns the job's ID, for {@link PipelineContext.cancelJob} of a delayed job.
   * @throws TypeError for a payload that does not match the job's `input`, and for an invalid time;
   * Error for an undeclared job, after `commit` has started, and in a query;
   * RangeError beyond the limit of the queue, or for more than a year; AccessDeniedError for a
   * `tenantId` outside a system run.
   * @example
   * const { jobId } = await ctx.enqueue("orders.invoice.remind", { id }, { delaySeconds: 3 * 86_400 });
   */
  abstract get enqueue(): <Job extends AnyJob, Payload = unknown>(
    job: JobParameter<Job, Payload>,
    payload: NoInfer<JobPayload<Job, Payload>>,
    options?: EnqueueOptions,
  ) => Promise<EnqueuedJob>;
}

declare abstract class AfterMembers {
  /** Enqueues a job immediately. */
  abstract get enqueue(): <Job extends AnyJob, Payload = unknown>(
    job: JobParameter<Job, Payload>,
    payload: NoInfer<JobPayload<Job, Payload>>,
    options: EnqueueOptions & { readonly afterCommit: false },
  ) => Promise<EnqueuedJob>;
}

declare abstract class CancelMember {
  /**
   * Cancels a delayed job immediately, even if the handler throws later.
   * @returns `true` if the job will never run; `false` if it is being sent, was sent or canceled,
   * belongs to another tenant, or was not delayed.
   * @throws Error in a query.
   */
  abstract get cancelJob(): (jobId: string) => Promise<boolean>;
}

declare abstract class EffectMembers {
  /**
   * Publishes an event (specification 2.8), at least once. It joins the commit of the run, unless
   * `options.afterCommit` is `false`.
   * @throws TypeError for a payload that does not match its schema; Error for an undeclared type,
   * after `commit` has started, and in a query; RangeError beyond the limit of the bus.
   */
  abstract get publish(): <Event extends AnyEvent, Sent = unknown>(
    event: EventParameter<Event, Sent, unknown>,
    payload: NoInfer<EventPayload<Event, Sent>>,
    options?: EffectOptions,
  ) => Promise<void>;
  /**
   * Runs a call that is not part of the commit and must not happen twice, such as a charge, and
   * stores its result. Later runs of the same write, event or job receive that result without
   * calling again. `call` receives a key that is the same in all these runs.
   *
   * A typed error of `call` means that nothing was done, so the next run calls again. After any
   * other end (another error, a timeout, a crash) the outcome is unknown, and `options.ifUnknown`
   * decides.
   * @param name - 1 to 64 letters, digits, `.`, `_`, `:` and `-`, unique within the handler.
   * @returns the result after a JSON round trip, up to 1 MB.
   * @throws UnknownOutcomeError (409) for an unknown outcome, with `ifUnknown: "refuse"`; any error
   * of `call`; TypeError, in every run, for a result that is too large or not JSON, although the
   * step is done; Error without a claim, for a name that the run already used, and in a query.
   * @example
   * const charge = await ctx.step("charge", { ifUnknown: "retry" }, (idempotencyKey) =>
   *   stripe.charges.create({ amount, currency: "eur" }, { idempotencyKey }),
   * );
   */
  abstract get step(): <Result>(
    name: string,
    options: StepOptions,
    call: (key: string) => Result | Promise<Result>,
  ) => Promise<StepResult<Result>>;
}

/** Members of every `ctx`, which only read. */
export interface ReadContext<Caller extends User = User> extends ReadMembers {
  /**
   * DynamoDB document client. In tables with `tenant: true`, it reaches only the rows of the
   * caller's tenant.
   */
  readonly db: Database;
  readonly user: Caller;
  /** Logs with `requestId`, `tenantId`, `userId` and `handler`. */
  readonly log: Logger;
  /** Correlation ID: from `X-Request-ID`, or generated. */
  readonly requestId: string;
  /**
   * Reads a configuration value through the cascade (specification 4.1). With `options.param`, does
   * the same as `resolveConfigOrParam`.
   * @throws FrameworkError `config_unavailable` (503) if the rows cannot be read and no earlier
   * value is known.
   */
  readonly config: <Value>(
    handle: ConfigKeyHandle<Value>,
    options?: ConfigOptions,
  ) => Promise<Value>;
  /**
   * Runs another query as the same caller, with its access rule and input schema.
   * @throws FrameworkError `unauthenticated` (401) or AccessDeniedError (403) if the rule refuses
   * the caller.
   */
  readonly query: <Query extends AnyQuery>(
    query: Query,
    input: QueryOf<Query>["input"],
  ) => Promise<QueryOf<Query>["output"]>;
  /**
   * Aborts when the caller disconnects or the run's deadline passes. Absent if the request has no
   * signal (specification 4.5).
   */
  readonly signal?: AbortSignal;
  /** The HTTP request. Absent in runs outside of HTTP. */
  readonly request?: RequestView;
}

/** The `ctx` of a query. In plain JavaScript, a call of an effect throws. */
export interface QueryContext<Caller extends User = User>
  extends ReadContext<Caller>,
    RateLimitMember,
    DeliveryMember {}

/** The `ctx` of the hooks `before` and `commit`. Hooks return items instead of committing them. */
export interface HookContext<Caller extends User = User>
  extends QueryContext<Caller>,
    JobMembers,
    CancelMember,
    EffectMembers {}

/**
 * The `ctx` of the hook `after`, without the effects of a commit, which has already happened. A job
 * is enqueued with `{ afterCommit: false }`.
 */
export interface AfterHookContext
  extends ReadContext,
    RateLimitMember,
    AfterMembers,
    CancelMember {}

/**
 * The `ctx` of writes, consumers, jobs, channels and schedules (specification 2.6). `Caller` is
 * `User` for `access.everyone`, and in handlers without a route, otherwise `AuthenticatedUser`.
 */
export interface PipelineContext<Caller extends User = User> extends HookContext<Caller> {
  /**
   * Writes items and this write's answer in one transaction, exactly once even across crashes.
   * Returns `result`, which remains the answer even if the handler throws later. Accepts up to
   * 99 items (100 without a claim) and 4 MB.
   * @param result - a value, a `reply`, or a `Response`.
   * @throws CommitConditionError (409) if a condition failed; nothing is written then. RangeError
   * beyond the limits and TypeError for an invalid item, both before anything is sent. Error for a
   * second commit in a run, and in queries. The error of an earlier effect of the run that fails.
   * @example
   * return ctx.commit([{ Put: { TableName: table.name, Item: row } }], reply(file, { status: 201 }));
   */
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
}
