import type { User } from "../../base/identity/user.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { MetricsAccessor } from "../../base/metrics/own-metrics.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import type { Trace } from "../../base/request/trace.ts";
import type { CommitItem, Database } from "../../base/types/database.ts";
import type { Channels, Events, Jobs, Queries } from "../../base/types/names.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { EventRange, KeptEvent } from "../../parts/messages/kept-events.ts";
import type { IfUnknown } from "../../parts/once/step.ts";

/** Sends messages through channels, each as a job (specification 2.6). */
export interface DeliveryAccessor {
  /**
   * Sends a message through a channel, at least once. The message joins the run's commit like an
   * event: it is stored by `commit`, or otherwise when the handler returns. It is dropped if the
   * handler throws or answers 400 or above, or if the commit fails.
   *
   * @param options.key - a message with the same channel, tenant and key within a day is a
   * duplicate and is dropped. Default: every call is a separate message, and a retried run's
   * messages are recognized as duplicates.
   * @throws TypeError if the message does not match the channel's `input`; Error for an undeclared
   * channel, after `commit` has started, and in a query.
   */
  readonly send: <Name extends keyof Channels>(
    channel: Name,
    message: Channels[Name],
    options?: { readonly key?: string },
  ) => Promise<void>;
}

/** Options of `ctx.enqueue`. */
export interface EnqueueOptions {
  /** Delay until the job is due, in seconds, up to a year (31,536,000). Default: no delay. */
  readonly delaySeconds?: number;
  /** Time at which the job is due, up to a year ahead. A time in the past means now. */
  readonly at?: Date;
  /**
   * Tenant of the job and of everything that follows from the job. Allowed only in system runs.
   * Default: no tenant.
   */
  readonly tenantId?: string;
}

/** Options of `ctx.step`. */
export interface StepOptions {
  /**
   * Behavior of a later run if the outcome of the step is unknown. `refuse`, the default, throws an
   * `UnknownOutcomeError` until `keelson steps resolve` records the outcome. `retry` calls again
   * with the same key, for providers that deduplicate by key.
   */
  readonly ifUnknown?: IfUnknown;
}

/** Result of a step after a JSON round trip: dates are strings, and functions are dropped. */
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
 * The `ctx` that every handler receives as its first argument (specification 2.6). `Caller` follows
 * the access rule: `AuthenticatedUser` for `access.authenticated` and every stricter rule, and
 * `User` without a route, in consumers and in jobs.
 */
export interface PipelineContext<Caller extends User = User> {
  /**
   * DynamoDB document client for this request. In tables with tenants, it reaches only the rows of
   * the caller's tenant.
   */
  readonly db: Database;
  /**
   * Returns a database that reaches the rows of every tenant. Allowed for callers with
   * `systemAdmin` and for system runs, which have no tenant and do not originate from a request.
   * Logs `tenant.crossed` with the reason.
   *
   * @throws AccessDeniedError (403) for any other caller; TypeError without a reason.
   * @example
   * const db = ctx.acrossTenants("monthly report");
   */
  readonly acrossTenants: (reason: string) => Database;
  /** Caller of the run. */
  readonly user: Caller;
  /** Logs with `requestId`, `tenantId`, `userId` and `handler`. */
  readonly log: Logger;
  /** Correlation ID: adopted from `X-Request-ID`, or generated. */
  readonly requestId: string;
  /** Trace of the run, with the headers for outgoing calls. */
  readonly trace: Trace;
  /**
   * Reads a configuration value through the cascade (specification 4.1).
   *
   * @throws FrameworkError `config_unavailable` (503) if the rows cannot be read and no earlier
   * value is known.
   */
  readonly config: <Value>(handle: ConfigKeyHandle<Value>) => Promise<Value>;
  /**
   * Runs a query as the same caller. Checks its access rule and validates its input, like its
   * route.
   *
   * @throws FrameworkError `unauthenticated` (401) or AccessDeniedError (403) if its access rule
   * refuses the caller.
   */
  readonly query: <Name extends keyof Queries>(
    name: Name,
    input: Queries[Name]["input"],
  ) => Promise<Queries[Name]["output"]>;
  /**
   * Writes items and the answer of this write in one transaction: the effect happens exactly once,
   * even across crashes. Returns `result`, which remains the answer even if the handler throws
   * later. Takes up to 99 items (100 without a claim) and 4 MB.
   *
   * @param result - the handler's result: a value, a `reply`, or a `Response`.
   * @throws CommitConditionError (409) if a condition failed, in which case nothing is written.
   * RangeError beyond the limits and TypeError for an invalid item, both before anything is sent.
   * Error for a second commit in a run, and in queries. The error of an effect that the run started
   * earlier, if the effect fails.
   * @example
   * return ctx.commit([{ Put: { TableName: table.name, Item: row } }], reply(file, { status: 201 }));
   */
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
  /**
   * Publishes an event (specification 2.8). keelson holds the event until `commit`, or otherwise
   * until the handler returns, stores it in the commit, and then sends it to the bus. The event is
   * dropped if the commit fails, and if the handler throws or answers 400 or above.
   *
   * @throws TypeError for a payload that does not match its schema; Error for an undeclared type,
   * after `commit` has started, and in a query; RangeError if the event exceeds the limit of the
   * bus.
   */
  readonly publish: <Type extends keyof Events>(type: Type, payload: Events[Type]) => Promise<void>;
  /**
   * Enqueues a job immediately (specification 6.5). The job runs at least once, even if the handler
   * throws later. The queue drops a job with the same name, tenant and payload as another job of
   * the last 5 minutes.
   *
   * With `delaySeconds` or `at`, the job is due later, up to a year. It is then stored with the
   * commit, like an event, and dropped if the commit fails, or if the handler throws or answers 400
   * or above. A delayed job is not deduplicated. keelson sends it within a minute after it is due.
   *
   * @returns the job's ID, which cancels a delayed job with {@link PipelineContext.unschedule}.
   * @throws TypeError if the payload does not match the job's `input`, and for an invalid time;
   * Error for an undeclared job, for a delayed job after `commit` has started, and in a query;
   * RangeError if the job exceeds the limit of the queue, or is due in more than a year;
   * AccessDeniedError for a `tenantId` outside a system run.
   * @example
   * const { jobId } = await ctx.enqueue("orders.invoice.remind", { id }, { delaySeconds: 3 * 86_400 });
   */
  readonly enqueue: <Name extends keyof Jobs>(
    name: Name,
    payload: Jobs[Name],
    options?: EnqueueOptions,
  ) => Promise<{ readonly jobId: string }>;
  /**
   * Cancels a delayed job immediately, even if the handler throws later.
   *
   * @returns `true` if the job will never run. `false` if it is being sent, was sent, was canceled
   * before, belongs to another tenant, or was not delayed.
   * @throws Error in a query.
   */
  readonly unschedule: (jobId: string) => Promise<boolean>;
  /**
   * Reads the kept events of the caller's tenant, oldest first, in pages. Stops at `signal`. Events
   * of a commit that is still in flight can appear later with an earlier time.
   *
   * @throws Error on the first read if the type is not declared as kept or the run has no tenant;
   * TypeError for an invalid range.
   * @example
   * for await (const { keptAt, payload } of ctx.events("file.created", { since: yesterday })) count(payload);
   */
  readonly events: <Type extends keyof Events>(
    type: Type,
    range?: EventRange,
  ) => AsyncIterable<KeptEvent<Events[Type]>>;
  /**
   * Runs a call that must not happen twice and is outside the transaction of `commit`, such as a
   * charge at a payment provider, and stores its result. Every later run of the same write, event
   * or job receives the stored result without calling again. `call` receives a key that is the same
   * in all these runs, for providers that deduplicate by key.
   *
   * If `call` throws a typed error, nothing was done, and the next run calls again. If it ends in
   * any other way (another error, a timeout, a crash), its outcome is unknown: `options.ifUnknown`
   * determines the behavior of a later run.
   *
   * @param name - 1 to 64 letters, digits, `.`, `_`, `:` and `-`, unique within the handler.
   * @returns the result after a JSON round trip, up to 1 MB.
   * @throws UnknownOutcomeError (409) if the outcome of the step is unknown, with
   * `ifUnknown: "refuse"`; any error that `call` throws; TypeError for a result that is too large
   * or that JSON cannot represent, in which case the step is done and every run throws this error;
   * Error without a claim, for a name that the run already used, and in a query.
   * @example
   * const charge = await ctx.step("charge", { ifUnknown: "retry" }, (idempotencyKey) =>
   *   stripe.charges.create({ amount, currency: "eur" }, { idempotencyKey }),
   * );
   */
  readonly step: <Result>(
    name: string,
    options: StepOptions,
    call: (key: string) => Result | Promise<Result>,
  ) => Promise<StepResult<Result>>;
  /** Sends messages through channels. */
  readonly delivery: DeliveryAccessor;
  /**
   * Records metrics.
   *
   * @example
   * ctx.metrics.add("shop.order.placed", 1, { plan: "pro" });
   */
  readonly metrics: MetricsAccessor;
  /**
   * Aborts when the caller disconnects or the deadline of the run passes. Absent if the request has
   * no signal (specification 4.5).
   */
  readonly signal?: AbortSignal;
  /** HTTP request. Absent outside of HTTP. */
  readonly request?: RequestView;
}
