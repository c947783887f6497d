import { errorLog } from "../../base/errors/describe.ts";
import { FrameworkError, isTypedError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { nameOf } from "../../base/types/handles.ts";
import { type HttpRequest, requestView } from "../../parts/http/message.ts";
import { RateCounter, type RateVerdict } from "../../parts/limits/rate-counter.ts";
import { largestNumber } from "../../parts/limits/rate-limit.ts";
import { withOutages } from "../../parts/limits/rate-outage.ts";
import { partitionOf, type RateCaller } from "../../parts/limits/rate-partition.ts";
import type { RateStore } from "../../parts/limits/rate-store.ts";
import { secondsUntil } from "../../parts/limits/rate-window.ts";
import { createContext } from "../ctx/context.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RateLimitVerdict } from "../handlers/rate-limit.ts";
import { type PlacedRate, rateOf, ratesOf } from "../registry/rate-limits.ts";
import type { LimitedRun, RateLimiting } from "../runtime/rate-limiting.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { type CountedRate, RequestRates, type Taken, type Wanted } from "./request-rates.ts";

const noBytes = new Uint8Array(0);
/** An outage has ended when a limit has not failed for this time, in milliseconds. */
const outageMs = 60_000;

type Refused = Taken & { readonly verdict: RateVerdict };

type LazyContext = () => PipelineContext | Promise<PipelineContext>;

/** The rate limits of a server in this process. */
export class RateGate implements RateLimiting {
  readonly #runtime: Runtime;
  readonly #store: Pick<RateStore, "take">;
  readonly #counted = new Map<string, CountedRate>();
  readonly #routes = new Map<HandlerDeclaration, readonly CountedRate[]>();
  /** Errors of limits that shut. */
  readonly #shut = new WeakSet<Error>();
  /** When each limit failed last. */
  readonly #failedMs = new Map<string, number>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    const { adapters, clock } = runtime;
    const take: RateStore["take"] = async (...given) => {
      const { rates } = await adapters.open();
      return (rates.value ?? (await rates.open())).take(...given);
    };
    this.#store = withOutages({ take }, clock);
  }

  admit(
    scope: LimitedRun,
    request: HttpRequest,
    handler: HandlerDeclaration,
    isKnown: boolean,
  ): Promise<void> | undefined {
    const rates = this.#ratesOf(handler);
    if (rates.length === 0) return undefined;
    const { clock } = this.#runtime;
    scope.rates ??= new RequestRates({
      ...{ clock, rates },
      caller: () => ({ user: scope.user, ip: request.ip }),
    });
    const due = rates.filter(({ limit }) => (limit.per === "ip") !== isKnown);
    if (due.length === 0) return undefined;
    const held = scope.rates as RequestRates; // safe cast: only this function sets it
    const ctx = async () => {
      const view = () => requestView(request, noBytes);
      const adapters = await this.#runtime.adapters.open();
      return createContext(scope as RequestScope, adapters, { request: view }); // safe cast: the pipeline passes its scope
    };
    const caller = { user: scope.user, ip: request.ip };
    const taking = due.map((rate) => this.#take(rate, caller, ctx, 1));
    if (taking.some((one) => one instanceof Promise))
      return Promise.allSettled(taking).then((ends) => this.#settle(scope, held, ends));
    this.#decide(scope, held, taking as Taken[]); // safe cast: there is no promise
    return undefined;
  }

  async take(
    scope: LimitedRun,
    ctx: PipelineContext,
    limit: unknown,
    count: unknown = 1,
  ): Promise<RateLimitVerdict> {
    return this.#verdictOf(await this.#takeDeclared(scope, ctx, limit, count));
  }

  async assertTaken(
    scope: LimitedRun,
    ctx: PipelineContext,
    limit: unknown,
    count: unknown = 1,
  ): Promise<RateLimitVerdict> {
    const taken = await this.#takeDeclared(scope, ctx, limit, count);
    if (taken !== undefined && isRefused(taken)) throw this.#refusal([taken]);
    return this.#verdictOf(taken);
  }

  async #takeDeclared(
    scope: LimitedRun,
    ctx: PipelineContext,
    limit: unknown,
    count: unknown,
  ): Promise<Taken | undefined> {
    const name = nameOf(limit as never); // safe cast: it takes anything
    const declared = this.#runtime.server.registry.rateLimits.get(name);
    if (declared === undefined)
      throw new Error(
        `ctx.rateLimit: ${quoted(name)} is declared by no feature of this server; add its feature to buildServer`,
      );
    const tokens = Number(count);
    if (!Number.isSafeInteger(count) || tokens < 1)
      throw new TypeError(
        `ctx.rateLimit: the count is ${quoted(count)}; use a whole number from 1`,
      );
    const caller = { user: ctx.user, ip: scope.asked?.ip };
    const taken = await this.#take(this.#countedOf(rateOf(declared)), caller, () => ctx, tokens);
    if (taken !== undefined && isRefused(taken)) this.#report(scope, [taken]);
    return taken;
  }

  /** Returns a promise only if it has to wait: most checks are answered from memory. */
  #take(
    rate: CountedRate,
    caller: RateCaller,
    ctx: LazyContext,
    tokens: number,
  ): Taken | undefined | Promise<Taken | undefined> {
    const { per, requests } = rate.limit;
    if (typeof per === "function" || typeof requests !== "number")
      return this.#takeResolved(rate, caller, ctx, tokens);
    const partition = partitionOf(per, caller);
    return this.#takeFrom({ rate, partition, number: requests }, tokens);
  }

  #takeFrom(wanted: Wanted, tokens: number): Taken | Promise<Taken> {
    const { rate, partition, number } = wanted;
    const verdict = rate.counter.take(partition, number, tokens);
    if (!(verdict instanceof Promise)) return { ...wanted, verdict };
    return verdict.then(
      (settled) => ({ ...wanted, verdict: settled }),
      (error: unknown) => ({ ...wanted, verdict: this.#failed(rate, error) }),
    );
  }

  async #takeResolved(
    rate: CountedRate,
    caller: RateCaller,
    makeContext: LazyContext,
    tokens: number,
  ): Promise<Taken | undefined> {
    const { per, requests } = rate.limit;
    let ctx: PipelineContext;
    let number: number;
    try {
      ctx = await makeContext();
      number = typeof requests === "number" ? requests : wholeOf(await ctx.config(requests));
    } catch (error) {
      if (!isOutage(error)) throw error;
      return this.#failed(rate, error);
    }
    if (typeof per !== "function")
      return this.#takeFrom({ rate, partition: partitionOf(per, caller), number }, tokens);
    const text: unknown = await per(ctx as never); // safe cast: `per` takes a ctx that reads
    if (typeof text !== "string")
      throw new TypeError(`${rate.facts.id}: \`per\` returned ${quoted(text)}; return a string`);
    return this.#takeFrom({ rate, partition: partitionOf("own", caller, text), number }, tokens);
  }

  /** Logs once per outage and limit. @throws FrameworkError `overloaded` if the limit shuts. */
  #failed({ limit, name, facts }: PlacedRate, cause: unknown): undefined {
    const isShut = limit.onFailure === "shut";
    const now = this.#runtime.clock.now();
    const isGoingOn = Math.abs(now - (this.#failedMs.get(facts.id) ?? -outageMs)) < outageMs;
    this.#failedMs.set(facts.id, now);
    if (!isGoingOn) {
      const requests = isShut ? "refused" : "admitted";
      const reason = String(errorLog(cause).data["message"]);
      this.#runtime.log.error("rate.unavailable", { limit: facts.id, requests, reason });
    }
    if (!isShut) return undefined;
    const message = `The limit ${name} cannot be checked at the moment`;
    const headers = { "retry-after": "1" };
    const error = new FrameworkError("overloaded", message, { cause, headers });
    this.#shut.add(error);
    throw error;
  }

  /** A request that a limit shuts out takes from none. One whose `per` throws counts, as one whose handler throws. */
  #settle(
    scope: LimitedRun,
    rates: RequestRates,
    ends: readonly PromiseSettledResult<Taken | undefined>[],
  ): void {
    const taken = ends.map((end) => (end.status === "fulfilled" ? end.value : undefined));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed === undefined) {
      this.#decide(scope, rates, taken);
      return;
    }
    rates.add(taken.filter((one) => one !== undefined));
    if (this.#shut.has(failed.reason)) rates.giveBack();
    throw failed.reason;
  }

  /** Takes from all limits or, if one refuses, from none. */
  #decide(scope: LimitedRun, rates: RequestRates, taken: readonly (Taken | undefined)[]): void {
    const known = taken.filter((one) => one !== undefined);
    rates.add(known);
    const refused = known.filter(isRefused);
    if (refused.length === 0) return;
    rates.giveBack();
    this.#report(scope, refused);
    throw this.#refusal(refused);
  }

  #report(scope: LimitedRun, refused: readonly Refused[]): void {
    this.#runtime.metrics?.record("keelson.rate_limited", 1);
    for (const { rate, number, verdict } of refused) {
      if (!rate.counter.isFirstRefusal(verdict)) continue;
      const { id, window, key } = rate.facts;
      const until = new Date(verdict.resetMs).toISOString();
      scope.log.warn("rate.limited", { limit: id, key, number, window, until });
    }
  }

  #refusal(refused: readonly Refused[]): FrameworkError {
    const endMs = Math.max(...refused.map(({ verdict }) => verdict.resetMs));
    const headers = { "retry-after": String(secondsUntil(endMs, this.#runtime.clock.now())) };
    const limits = refused.map(
      ({ rate, number }) => `${rate.name} allows ${number} per ${rate.facts.window}`,
    );
    const message = `Too many requests: ${limits.join(", ")}`;
    return new FrameworkError("too_many_requests", message, { headers });
  }

  #verdictOf(taken: Taken | undefined): RateLimitVerdict {
    const { isAdmitted = true, remaining = 0, resetMs = 0 } = taken?.verdict ?? {};
    const seconds = isAdmitted ? 0 : secondsUntil(resetMs, this.#runtime.clock.now());
    return { ok: isAdmitted, remaining, retryAfterSeconds: seconds };
  }

  #ratesOf(handler: HandlerDeclaration): readonly CountedRate[] {
    const known = this.#routes.get(handler);
    if (known !== undefined) return known;
    const rates = ratesOf(this.#runtime.server, handler).map((placed) => this.#countedOf(placed));
    this.#routes.set(handler, rates);
    return rates;
  }

  /** Limits of a feature and of the server have one counter for all their routes. */
  #countedOf(placed: PlacedRate): CountedRate {
    const { facts } = placed;
    const { clock } = this.#runtime;
    const known = this.#counted.get(facts.id) ?? {
      ...placed,
      counter: new RateCounter({ limit: facts, store: this.#store, clock }),
    };
    this.#counted.set(facts.id, known);
    return known;
  }
}

function isRefused(taken: Taken): taken is Refused {
  return taken.verdict?.isAdmitted === false;
}

/** Any other error is a mistake of the application, such as a key of no feature. */
function isOutage(error: unknown): boolean {
  return isTypedError(error) ? error.status >= 500 : Object(error).$metadata !== undefined;
}

/** @throws TypeError without a number, before the call to the store, whose failure would pause all limits. */
function wholeOf(value: number): number {
  const whole = Math.min(largestNumber, Math.max(0, Math.floor(value)));
  if (Number.isNaN(whole)) throw new TypeError("the configuration key of its number has no value");
  return whole;
}
