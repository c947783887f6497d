import type { User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RateLimitVerdict } from "../handlers/rate-limit.ts";
import type { AskedRequest } from "../observe/tracing.ts";

/** Part of a run's scope. */
export interface LimitedRun {
  readonly asked: AskedRequest | undefined;
  readonly user: User;
  readonly log: Logger;
  rates: HeldRates | undefined;
}

/** The rate limits of a server. */
export interface RateLimiting {
  /**
   * Checks the limits of a route: before the caller is known, the limits per address, and then all
   * others. Returns `undefined` if it does not have to wait.
   * @throws FrameworkError `too_many_requests` (429), and `overloaded` (503) if the store fails and
   * the limit shuts.
   */
  admit(
    scope: LimitedRun,
    request: HttpRequest,
    handler: HandlerDeclaration,
    isKnown: boolean,
  ): Promise<void> | undefined;
  /** Takes from a declared limit, for `ctx.rateLimit`. */
  take(
    scope: LimitedRun,
    ctx: PipelineContext,
    limit: unknown,
    count: unknown,
  ): Promise<RateLimitVerdict>;
  /** @throws FrameworkError `too_many_requests` (429) if the limit refuses. */
  assertTaken(...given: Parameters<RateLimiting["take"]>): Promise<RateLimitVerdict>;
}

/** The limits that a request was held against, for the headers of its response. */
export interface HeldRates {
  addTo(headers: Record<string, string>): void;
}
