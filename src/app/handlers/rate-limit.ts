import type { RateLimitHandle } from "../../base/types/handles.ts";
import { ownLimitProblems, type RateLimit } from "../../parts/limits/rate-limit.ts";
import { type Declaring, isWord, named } from "./requirements.ts";

/** Verdict of `ctx.rateLimit`. */
export interface RateLimitVerdict {
  readonly ok: boolean;
  /** Number that this process knows to be left in the window; 0 while the store fails. */
  readonly remaining: number;
  /** Seconds until the window ends, rounded up, if `ok` is `false`; otherwise 0. */
  readonly retryAfterSeconds: number;
}

/** Takes from the limits that features declare with `r.rateLimit`. */
export interface RateLimitAccessor {
  /**
   * Takes `count` from the limit, 1 by default, or nothing if less is left.
   * @throws FrameworkError `too_many_requests` (429) with `Retry-After` if less is left. If a
   * consumer or a job throws it, the queue redelivers the message when the window has ended, and the
   * attempt does not count as failed. `overloaded` (503) while the store fails, for a limit with
   * `onFailure: "shut"`. TypeError for a wrong count; Error for a limit of no feature of this server.
   * @example
   * await ctx.rateLimit.take(sms, 2);
   */
  readonly take: (limit: RateLimitHandle, count?: number) => Promise<RateLimitVerdict>;
  /** Does the same as `take`, but returns the verdict instead of throwing `too_many_requests`. */
  readonly tryTake: (limit: RateLimitHandle, count?: number) => Promise<RateLimitVerdict>;
}

/** Member of a `ctx` that is created when it is first used. */
export declare abstract class RateLimitMember {
  /**
   * Takes from declared rate limits. A run that fails does not give anything back. See
   * `docs/rate-limits.md`.
   */
  abstract get rateLimit(): RateLimitAccessor;
}

/** A limit that handlers take from. */
export interface RateDeclaration {
  readonly feature: string;
  /** Full name: `<feature>.<name>`. */
  readonly name: string;
  readonly limit: RateLimit;
}

export function rateLimit(
  { feature, report }: Declaring,
  given: string,
  options: unknown,
): RateDeclaration {
  const name = `${feature}.${named(given)}`;
  if (!isWord(given)) {
    const message = `${named(given)} is not in kebab case`;
    report({ key: name, rule: "limit-name", message, fix: 'for example "sms"' });
  }
  ownLimitProblems(name, options).map(report);
  return { feature, name, limit: options as RateLimit }; // safe cast: a server with problems is never built
}
