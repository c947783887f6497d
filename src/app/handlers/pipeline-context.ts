import type { User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { MetricsAccessor } from "../../base/metrics/metrics.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import type { Trace } from "../../base/request/trace.ts";
import type { CommitItem, Database } from "../../base/types/database.ts";
import type {
  AnyEvent,
  AnyJob,
  AnyQuery,
  EventParameter,
  EventPayload,
  JobParameter,
  JobPayload,
  QueryOf,
  ReceivedOf,
} from "../../base/types/handles.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { ConfigOptions } from "../../parts/config/read/request-parameter.ts";
import type { EventRange, KeptEvent } from "../../parts/messages/kept-events.ts";
import type {
  DeliveryAccessor,
  EffectOptions,
  EnqueuedJob,
  EnqueueOptions,
  StepOptions,
  StepResult,
} from "./effect-options.ts";
import type { RateLimitMember } from "./rate-limit.ts";

/**
 * Members that are created when they are first used. TypeScript leaves the accessors of a class out
 * of `{ ...ctx }`, which has only own properties.
 */
declare abstract class ReadMembers {
  /**
   * Returns a database that reaches the rows of every tenant, and logs `tenant.crossed` with the
   * reason. Only for `systemAdmin` and for system runs, which have no tenant and no request. See
   * `docs/tenants.md`.
   * @throws AccessDeniedError (403) for any other caller; TypeError without a reason.
   * @example
   * const db = ctx.acrossTenants("monthly report");
   */
  abstract get acrossTenants(): (reason: string) => Database;
  /** Trace of the run, with the headers for outgoing calls. See `docs/traces.md`. */
  abstract get trace(): Trace;
  /**
   * Reads the kept events of the caller's tenant in pages, oldest first, until `signal` aborts.
   * An event whose commit is still in flight can appear in a later read, with an earlier time. See
   * `docs/kept-events.md`.
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
   * Records metrics. See `docs/metrics.md#your-own`.
   * @example
   * ctx.metrics.add("shop.order.placed", 1, { plan: "pro" });
   */
  abstract get metrics(): MetricsAccessor;
}

declare abstract class DeliveryMember {
  /** Messages to the outside. Throws in a query. See `docs/deliveries.md`. */
  abstract get delivery(): DeliveryAccessor;
}

declare abstract class JobMembers {
  /**
   * Enqueues a job (specification 6.5), which runs at least once. It joins the commit of the run,
   * unless `options.afterCommit` is `false`. The queue drops a job with the same name, tenant and
   * payload as one of the last 5 minutes. See `docs/events.md`.
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
   * Cancels a delayed job immediately, even if the handler throws later. See `docs/delayed-jobs.md`.
   * @returns `true` if the job will never run; `false` if it is being sent, was sent or canceled,
   * belongs to another tenant, or was not delayed.
   * @throws Error in a query.
   */
  abstract get cancelJob(): (jobId: string) => Promise<boolean>;
}

declare abstract class EffectMembers {
  /**
   * Publishes an event (specification 2.8), at least once. It joins the commit of the run, unless
   * `options.afterCommit` is `false`. See `docs/events.md`.
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
   * calling again. `call` receives a key that is the same in all these runs. See `docs/steps.md`.
   *
   * A typed error of `call` means that nothing was done, so the next run calls again. After any
   * other end (another error, a timeout, a crash) the outcome is unknown, and `options.ifUnknown`
   * decides.
   * @param name - 1 to 64 letters, digits, `.`, `_`, `:` and `-`, starting with a letter or digit, and
   * unique within the handler.
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
   * DynamoDB document client, whose calls abort with `ctx.signal`. In tables with `tenant: true`, it
   * reaches only the rows of the caller's tenant.
   */
  readonly db: Database;
  /**
   * Caller: `id`, `tenantId`, `roles`, and `kind`, which is `apiKey` for an API key and `user`
   * otherwise. `id` and `tenantId` are strings if the access rule ensures it; an anonymous caller has
   * neither ID and no roles. See `docs/identity.md#access-rules`.
   */
  readonly user: Caller;
  /**
   * Logs with `requestId`, `tenantId`, `userId`, `handler` and `trace_id`. See
   * `docs/errors-and-logs.md`.
   */
  readonly log: Logger;
  /**
   * Correlation ID: the client's `X-Request-ID` if it has 1 to 128 characters of
   * `A-Z a-z 0-9 . _ : = + / @ -`, otherwise a new UUIDv7.
   */
  readonly requestId: string;
  /**
   * Reads a configuration value through the cascade (specification 4.1). With `options.param`, does
   * the same as `resolveConfigOrParam`. See `docs/configuration.md`.
   * @throws FrameworkError `config_unavailable` (503) if the rows cannot be read and no earlier
   * value is known.
   */
  readonly config: <Value>(
    handle: ConfigKeyHandle<Value>,
    options?: ConfigOptions,
  ) => Promise<Value>;
  /**
   * Runs another query as the same caller, with its access rule and input schema. See
   * `docs/features.md#calling-another-features-query`.
   * @throws FrameworkError `unauthenticated` (401) or AccessDeniedError (403) if the rule refuses
   * the caller.
   */
  readonly query: <Query extends AnyQuery>(
    query: Query,
    input: QueryOf<Query>["input"],
  ) => Promise<QueryOf<Query>["output"]>;
  /**
   * In a container, aborts when the client disconnects, and near the end of the drain. In Lambda, it
   * aborts when the function's time runs out and, with `stream: true`, when the client disconnects.
   * With `output: sse(…)` or `jsonLines(…)`, it also aborts when keelson ends the stream. It may be
   * absent, so write `ctx.signal?.throwIfAborted()` (specification 4.5).
   */
  readonly signal?: AbortSignal;
  /** The HTTP request, read-only. Absent in runs outside of HTTP. */
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
   * 99 items (100 without a claim) and 4 MB. See `docs/commit.md`.
   * @param result - a value, a `reply`, or a `Response`.
   * @throws CommitConditionError (409) if a condition failed; nothing is written then. RangeError
   * beyond the limits and TypeError for an invalid item, both before anything is sent. Error for a
   * second commit in a run, and in queries. The error of an earlier effect of the run that fails.
   * @example
   * return ctx.commit([{ Put: { TableName: table.name, Item: row } }], reply(file, { status: 201 }));
   */
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
}
