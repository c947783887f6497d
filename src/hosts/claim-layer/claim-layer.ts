import { AsyncLocalStorage } from "node:async_hooks";
import type { JSONValue } from "@aws-lambda-powertools/commons/types";
import {
  IdempotencyAlreadyInProgressError,
  type IdempotencyConfig,
  IdempotencyInconsistentStateError,
  IdempotencyItemAlreadyExistsError,
  IdempotencyItemNotFoundError,
} from "@aws-lambda-powertools/idempotency";
import {
  BasePersistenceLayer,
  type IdempotencyRecord,
} from "@aws-lambda-powertools/idempotency/persistence";
import { leaseMs } from "../../parts/once/claim.ts";
import {
  AnsweredElsewhere,
  type DurableContextLike,
  type DurableInvocation,
  durableInvocation,
  type Invocation,
  isOver,
  isReplay,
  isUnanswered,
  settle,
} from "./claim-invocation.ts";
import { assertClaimLayerOptions, type ClaimLayerOptions } from "./claim-layer-options.ts";
import { createFunctionClaims, type FunctionClaims } from "./function-claims.ts";

/**
 * Persistence layer for Powertools' `makeIdempotent`, `@idempotent` and `makeHandlerIdempotent`
 * (specification 3.2). Replaces `DynamoDBPersistenceLayer` on the same table, which both can use at
 * the same time. A claim has an owner and a renewed lease, only its owner completes or releases it,
 * and a concurrent duplicate waits for the answer. Records have Powertools' format.
 * `docs/powertools-idempotency.md` lists the problems that a layer cannot fix.
 *
 * @throws TypeError for unknown or invalid options; Error in production if
 * `POWERTOOLS_IDEMPOTENCY_DISABLED` is set.
 * @example
 * const persistenceStore = new ClaimLayer({ tableName: "idempotency" });
 * export const handler = makeIdempotent(charge, { persistenceStore });
 */
export class ClaimLayer extends BasePersistenceLayer {
  readonly #invocations = new AsyncLocalStorage<Invocation | undefined>();
  readonly #durable = new AsyncLocalStorage<DurableInvocation>();
  readonly #claims: FunctionClaims;
  readonly #waitMs: number;
  #config: IdempotencyConfig | undefined;

  constructor(options: ClaimLayerOptions) {
    super();
    assertClaimLayerOptions(options);
    this.#waitMs = options.waitMs ?? 10_000;
    this.#claims = createFunctionClaims(options, () => this.getExpiresAfterSeconds() * 1000);
  }

  /**
   * Wraps a function so that the layer knows the durable execution of each call, which Powertools
   * does not report. Replays then continue with the claims of their execution, a call of another
   * execution is a concurrent duplicate, and claims last while the execution is suspended, for at
   * most the configured `expiresAfterSeconds`.
   *
   * @example
   * export const handler = withDurableExecution(persistenceStore.durable(makeIdempotent(charge, { persistenceStore })));
   */
  durable<Event, Context extends DurableContextLike, Result>(
    handler: (event: Event, context: Context) => Result | Promise<Result>,
  ): (event: Event, context: Context) => Promise<Result> {
    return async (event, context) => {
      const durable = durableInvocation(event, context);
      try {
        return await this.#durable.run(durable, async () => handler(event, context));
      } catch (error) {
        // The engine wraps errors that a layer throws; the original error is the `cause`.
        const cause = error instanceof Error ? error.cause : undefined;
        // Safe: the answer is from the same function, for the same key.
        if (cause instanceof AnsweredElsewhere) return cause.answer as Result;
        throw cause instanceof IdempotencyAlreadyInProgressError ? cause : error;
      }
    };
  }

  override configure(options: Parameters<BasePersistenceLayer["configure"]>[0]): void {
    this.#config = options.config;
    super.configure(options);
  }

  /** Calls `enterWith` before its first `await`: the engine's next steps are this invocation's. */
  override async saveInProgress(data: JSONValue, remainingTimeInMillis?: number): Promise<void> {
    let outer = this.#invocations.getStore();
    if (outer?.state === "held" && Object.is(outer.data, data)) {
      outer.state = "running";
      return;
    }
    while (outer !== undefined && outer.state !== "running" && !isUnanswered(outer))
      outer = outer.outer;
    const invocation = this.#begin(data, super.getHashedIdempotencyKey(data), outer);
    if (remainingTimeInMillis !== undefined)
      invocation.deadlineMs = Date.now() + remainingTimeInMillis;
    this.#invocations.enterWith(invocation);
    invocation.key = this.getHashedIdempotencyKey(data);
    try {
      await super.saveInProgress(data, remainingTimeInMillis ?? leaseMs);
      invocation.state = "running";
    } catch (error) {
      if (error instanceof IdempotencyItemAlreadyExistsError) invocation.state = "refused";
      throw error;
    }
  }

  /** Waits for a running duplicate. The engine calls this method then, but never in a replay. */
  override async getRecord(data: JSONValue): Promise<IdempotencyRecord> {
    const invocation = this.#unanswered(data);
    if (invocation?.found === undefined) return super.getRecord(data);
    // Throws for a duplicate with another payload, before any wait.
    const record = await this.#claims.recordOf(invocation.key, invocation.found);
    const seen = this.processExistingRecord(record, data);
    if (this.#waitMs === 0) return seen;
    const found = await this.#claims.take(invocation, this.#waitMs);
    if (found !== undefined)
      return this.processExistingRecord(await this.#claims.recordOf(invocation.key, found), data);
    invocation.state = "held";
    // The engine retries immediately, unless it has used all its attempts.
    setImmediate(() => {
      if (invocation.state === "held") this.#claims.release(invocation);
    });
    throw new IdempotencyInconsistentStateError(
      `The duplicate of ${invocation.key} has failed: the engine tries again`,
    );
  }

  override processExistingRecord(
    record: IdempotencyRecord,
    data: JSONValue | IdempotencyRecord,
  ): IdempotencyRecord {
    const invocation = this.#unanswered(data);
    if (invocation !== undefined) invocation.isRefusalKnown = true;
    return super.processExistingRecord(record, data);
  }

  /** Returns the hash that was claimed, even if the event has changed since. */
  protected override getHashedIdempotencyKey(data: JSONValue): string {
    return (
      this.#current((invocation) => Object.is(invocation.data, data))?.hash ??
      super.getHashedIdempotencyKey(data)
    );
  }

  protected override async _putRecord(record: IdempotencyRecord): Promise<void> {
    const { idempotencyKey, payloadHash } = record;
    const invocation = this.#current(({ key }) => key === idempotencyKey);
    if (invocation === undefined)
      throw new Error(`${idempotencyKey} is claimed only by saveInProgress`);
    invocation.fingerprint = payloadHash || undefined;
    const isReplayed = isReplay(invocation);
    const found = await this.#claims.take(invocation, isReplayed ? this.#waitMs : 0);
    if (found === undefined) return;
    invocation.found = found;
    const message = `There is a record of ${idempotencyKey} already`;
    if (found.status === "INPROGRESS") {
      // In a replay, the engine would attribute the record to this execution and run the function.
      if (isReplayed)
        throw new IdempotencyAlreadyInProgressError(
          `${message}, in progress in another durable execution`,
        );
      throw new IdempotencyItemAlreadyExistsError(message);
    }
    const known = await this.#claims.recordOf(idempotencyKey, found);
    if (
      isReplayed &&
      found.execution !== undefined &&
      found.execution !== invocation.durable?.execution
    ) {
      // Safe: the engine passed `data` as a JSON value.
      this.processExistingRecord(known, invocation.data as JSONValue);
      const response = known.getResponse();
      const { responseHook: hook } = invocation;
      throw new AnsweredElsewhere(hook === undefined ? response : hook(response, known));
    }
    throw new IdempotencyItemAlreadyExistsError(message, known);
  }

  /** The engine caches the record afterwards, so the record gets what other processes read. */
  protected override async _updateRecord(record: IdempotencyRecord): Promise<void> {
    const { idempotencyKey, payloadHash } = record;
    const fits = (one: Invocation) =>
      one.key === idempotencyKey && (one.claim !== undefined || isUnanswered(one));
    const invocation = this.#current(fits) ?? this.#begin(undefined, idempotencyKey);
    try {
      // A replay keeps a stored result: other callers have already received it.
      if (isUnanswered(invocation) && (await this.#claims.takeForReplay(invocation)) === "done") {
        record.expiryTimestamp = 0; // keeps the replay's own result out of the cache
        return;
      }
      // The claim may still be free if no invocation, or another one, requested it.
      if (invocation.state === "claiming") {
        invocation.fingerprint = payloadHash || undefined;
        await this.#claims.take(invocation, 0);
      }
      const { claim } = invocation;
      const completed = claim && (await this.#claims.complete(claim, record.responseData));
      if (completed === undefined)
        throw new Error(
          `${idempotencyKey} is not claimed by this invocation: it never was, or another invocation took it over after its lease`,
        );
      record.responseData = completed.stored as JSONValue; // safe: Powertools casts results as well
    } finally {
      settle(invocation);
    }
  }

  protected override async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
    const invocation = this.#current(({ key }) => key === idempotencyKey);
    if (invocation !== undefined) await this.#claims.release(invocation);
  }

  protected override async _getRecord(idempotencyKey: string): Promise<IdempotencyRecord> {
    const found = await this.#claims.read(idempotencyKey);
    if (found === undefined) throw new IdempotencyItemNotFoundError();
    return this.#claims.recordOf(idempotencyKey, found);
  }

  #begin(data: unknown, hash: string, outer?: Invocation): Invocation {
    return {
      data,
      hash,
      key: hash,
      outer,
      deadlineMs: undefined,
      durable: this.#durable.getStore(),
      responseHook: this.#config?.responseHook,
      fingerprint: undefined,
      claim: undefined,
      found: undefined,
      isRefusalKnown: false,
      state: "claiming",
    };
  }

  #unanswered(data: unknown): Invocation | undefined {
    return this.#current((one) => Object.is(one.data, data) && isUnanswered(one));
  }

  #current(fits: (invocation: Invocation) => boolean): Invocation | undefined {
    let invocation = this.#invocations.getStore();
    while (invocation !== undefined && (isOver(invocation) || !fits(invocation)))
      invocation = invocation.outer;
    return invocation;
  }
}
