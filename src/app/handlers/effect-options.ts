import type { AnyChannel, MessageOf } from "../../base/types/handles.ts";
import type { IfUnknown } from "../../parts/once/step.ts";

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
   * @throws TypeError if the message does not match the channel's `input`, and for a `key` that is not
   * a string; Error for an undeclared channel, after `commit` has started, and in a query.
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
