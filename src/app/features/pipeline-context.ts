import type { User } from "../../base/identity/user.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { RequestView } from "../../base/request/request-view.ts";
import type { Trace } from "../../base/request/trace.ts";
import type { CommitItem, Database } from "../../base/types/database.ts";
import type { Channels, Events, Jobs, Queries } from "../../base/types/names.ts";
import type { ConfigKeyHandle } from "../../parts/config/declare/key.ts";
import type { EventRange, KeptEvent } from "../../parts/messages/kept-event.ts";
import type { IfUnknown } from "../../parts/once/step.ts";

/** Sends messages through channels, each as a job (specification 2.6). */
export interface DeliveryAccessor {
  /**
   * Sends a message through a channel, at least once. It joins the commit of the run, as an event does: it is stored with what is
   * committed, or when the handler returns, and dropped if the handler throws, answers 400 or above, or the commit fails.
   *
   * @param options.key - a message with the same channel, tenant and key within a day is a duplicate and dropped.
   * Default: every call is a message of its own; if the run is retried, its messages are recognised as duplicates.
   * @throws TypeError if the message does not match the channel's `input`; Error for an undeclared channel, once `commit` has
   * begun, and in a query.
   */
  readonly send: <Name extends keyof Channels>(
    channel: Name,
    message: Channels[Name],
    options?: { readonly key?: string },
  ) => Promise<void>;
}

/** Measures what the application's own metrics tell. */
export interface MetricsAccessor {
  /**
   * Adds to a metric that a feature has declared with `r.metric`, or has a histogram count a value. It goes where keelson's own
   * metrics go; where nobody listens it does nothing. Never throws: what cannot be taken is logged once as `metrics.ignored`.
   *
   * @param name - the full name: `<feature>.<entity>.<name>`.
   * @param value - a number from 0 to 2^360.
   * @param labels - a value that was not declared becomes `other`, a label that was not is left out.
   */
  readonly add: (
    name: string,
    value: number,
    labels?: Readonly<Record<string, string | undefined>>,
  ) => void;
}

/** Options of `ctx.enqueue`. */
export interface EnqueueOptions {
  /** Due in so many seconds, up to a year (31,536,000). Default: at once. */
  readonly delaySeconds?: number;
  /** Due at this time, up to a year ahead; one that has passed is now. */
  readonly at?: Date;
  /** The tenant that the job, and what follows from it, belongs to. In runs of the system alone; default: nobody's. */
  readonly tenantId?: string;
}

/** Options of `ctx.step`. */
export interface StepOptions {
  /**
   * What a run does where nobody knows how the step ended. `refuse`, the default: it throws an `UnknownOutcomeError`, until
   * `keelson steps resolve` says how. `retry`: it calls again, with the same key; for what deduplicates by it.
   */
  readonly ifUnknown?: IfUnknown;
}

/** What a step gives: its result as JSON has it, a date as a text, without functions. */
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
 * The `ctx` that every handler gets as its first argument (specification 2.6). `Caller` follows the access rule: behind
 * `access.authenticated` and every stricter rule it is `AuthenticatedUser`; without a route, in consumers and in jobs, `User`.
 */
export interface PipelineContext<Caller extends User = User> {
  /** A DynamoDB document client for this request. Of tables with tenants it reaches the rows of the caller's tenant alone. */
  readonly db: Database;
  /**
   * Gives a database that reaches the rows of every tenant, for callers with `systemAdmin`, and for runs of the system: those of no
   * tenant that no request has led to. Logs `tenant.crossed` with the reason.
   *
   * @throws AccessDeniedError (403) for anybody else; TypeError without a reason.
   * @example
   * const db = ctx.acrossTenants("monthly report");
   */
  readonly acrossTenants: (reason: string) => Database;
  /** The caller. */
  readonly user: Caller;
  /** Logs with `requestId`, `tenantId`, `userId` and `handler`. */
  readonly log: Logger;
  /** The correlation ID: adopted from `X-Request-ID`, or generated. */
  readonly requestId: string;
  /** The trace that the run belongs to, with the headers for outgoing calls. */
  readonly trace: Trace;
  /**
   * Reads a configuration value through the cascade (specification 4.1).
   *
   * @throws FrameworkError `config_unavailable` (503) if the rows cannot be read and no earlier value is known.
   */
  readonly config: <Value>(handle: ConfigKeyHandle<Value>) => Promise<Value>;
  /**
   * Runs a query as the same caller. Its access rule is checked and its input validated, as on its route.
   *
   * @throws FrameworkError `unauthenticated` (401) or AccessDeniedError (403) if its access rule refuses the caller.
   */
  readonly query: <Name extends keyof Queries>(
    name: Name,
    input: Queries[Name]["input"],
  ) => Promise<Queries[Name]["output"]>;
  /**
   * Writes items and the answer of this write in one transaction: the effect happens exactly once, whatever crashes.
   * Returns `result`, which is the answer even if the handler throws later. Takes at most 99 items (100 without a claim)
   * and 4 MB.
   *
   * @param result - what the handler would return: a value, a `reply`, or a `Response`.
   * @throws CommitConditionError (409) if a condition failed; nothing is written then. RangeError beyond the limits and
   * TypeError for an invalid item, before anything is sent; Error for a second commit in a run, and in queries; the error of an
   * effect that was started before and fails.
   * @example
   * return ctx.commit([{ Put: { TableName: table.name, Item: row } }], reply(file, { status: 201 }));
   */
  readonly commit: <const Result>(items: readonly CommitItem[], result: Result) => Promise<Result>;
  /**
   * Publishes an event (specification 2.8). The event is held until `commit`, or else until the handler returns, stored
   * with what is committed, and then sent to the bus. It is dropped if the commit fails, and if the handler throws or answers 400 or
   * above.
   *
   * @throws TypeError for a payload that does not match its schema; Error for an undeclared type, once `commit` has begun, and in
   * a query; RangeError if it is larger than the bus takes.
   */
  readonly publish: <Type extends keyof Events>(type: Type, payload: Events[Type]) => Promise<void>;
  /**
   * Enqueues a job at once (specification 6.5). It runs at least once, even if the handler throws later. The queue drops
   * a job with the same name, tenant and payload as one of the last 5 minutes.
   *
   * With `delaySeconds` or `at` it is due later, up to a year. Then it is stored with what is committed, as an event is:
   * dropped if the commit fails, and if the handler throws or answers 400 or above. It is a job of its own, whatever equals it. It is sent when it is
   * due, or within a minute after.
   *
   * @returns the job's ID; of one that is due later for {@link PipelineContext.unschedule}.
   * @throws TypeError if the payload does not match the job's `input`, and for a time that is none; Error for an undeclared
   * job, for one that is due later once `commit` has begun, and in a query; RangeError if it is larger than the queue takes, or due in
   * more than a year; AccessDeniedError for a `tenantId` in a run that is not the system's.
   * @example
   * const { jobId } = await ctx.enqueue("orders.invoice.remind", { id }, { delaySeconds: 3 * 86_400 });
   */
  readonly enqueue: <Name extends keyof Jobs>(
    name: Name,
    payload: Jobs[Name],
    options?: EnqueueOptions,
  ) => Promise<{ readonly jobId: string }>;
  /**
   * Takes a job back that is due later, at once: also if the handler throws later.
   *
   * @returns `true` if it will never run. `false` if it is being sent or was sent, was taken back, belongs to another tenant, or
   * was not enqueued for later.
   * @throws Error in a query.
   */
  readonly unschedule: (jobId: string) => Promise<boolean>;
  /**
   * Reads the kept events of the caller's tenant, the oldest first, in pages; it stops at `signal`. Events of a commit that
   * has not ended yet may come later with an earlier time.
   *
   * @throws Error, with the first event that is asked for, where the type is not declared as kept or the run has no tenant;
   * TypeError for a range that is none.
   * @example
   * for await (const { keptAt, payload } of ctx.events("file.created", { since: yesterday })) count(payload);
   */
  readonly events: <Type extends keyof Events>(
    type: Type,
    range?: EventRange,
  ) => AsyncIterable<KeptEvent<Events[Type]>>;
  /**
   * Does what must not happen twice and is not in the transaction of `commit`, such as a charge at a payment provider, and keeps its
   * result: every later run of the same write, event or job gets it without calling again. `call` gets a key that is the same in
   * all of them, for a provider that deduplicates by one.
   *
   * If `call` throws a typed error, nothing was done, and the next run calls again. If it ends in any other way (another error,
   * a timeout, a crash), nobody knows: `options.ifUnknown` says what a later run does.
   *
   * @param name - one of 1 to 64 letters, digits, `.`, `_`, `:` and `-`, of its own within the handler.
   * @returns the result as JSON gives it, up to 1 MB.
   * @throws UnknownOutcomeError (409) if it is not known how the step ended, with `ifUnknown: "refuse"`; what `call` throws;
   * TypeError for a result that JSON cannot hold, or is too large: then the step is done, and every run gets this error; Error
   * without a claim, for a name that the run has had, and in a query.
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
   * Measures.
   *
   * @example
   * ctx.metrics.add("shop.order.placed", 1, { plan: "pro" });
   */
  readonly metrics: MetricsAccessor;
  /** Aborts when the caller disconnects or its time is over; absent if the request has no signal (specification 4.5). */
  readonly signal?: AbortSignal;
  /** The HTTP request; absent outside of HTTP. */
  readonly request?: RequestView;
}
