import { AsyncLocalStorage } from "node:async_hooks";
import { FrameworkError, isTypedError, UnknownOutcomeError } from "../../base/errors/errors.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import { type AnswerCipher, loadAnswer } from "./answer.ts";
import { type ClaimKey, completedClaim, type StoredResult } from "./claim.ts";
import type { ClaimStore } from "./claim-store.ts";
import { derivedId } from "./derived-id.ts";
import type { Claim } from "./held-claim.ts";
import {
  type DoneStep,
  defaultKeepMs,
  doneStep,
  type IfUnknown,
  type StepFacts,
  type StepRecord,
  type StepStore,
  startedStep,
  stepPlace,
  stepVerdict,
  undoneStep,
} from "./step.ts";
import { parsed, storeResult, textOf, unkept } from "./step-result.ts";

export interface StepsOptions {
  readonly store: StepStore;
  readonly claims: Pick<ClaimStore, "putParts" | "readParts">;
  readonly claim: Pick<Claim, "key" | "owner" | "seed" | "lose">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics | undefined;
  readonly pause: (attempt: number) => Promise<void>;
  /** Of the run. No step starts after it aborts. */
  readonly signal: AbortSignal | undefined;
  readonly facts: Pick<StepFacts, "handler" | "requestId">;
  /** In milliseconds. Default: 14 days. */
  readonly keepMs: number | undefined;
  readonly cipherOf: (place: ClaimKey) => AnswerCipher;
  /** Whether results are stored encrypted. A result is read in the form that it was stored in. */
  readonly isSealed: boolean;
}

const [maxConflicts, maxFailures] = [10, 3];
const stepName = /^[A-Za-z0-9][\w.:-]{0,63}$/;

// Not module state: it has a value only inside the call of a step.
const inside = new AsyncLocalStorage<Steps>();

/** Steps of one run. Each step is called once, or has the result of an earlier call. */
export class Steps {
  readonly #options: StepsOptions;
  readonly #calls = new Map<
    string,
    { readonly attempt: number; readonly result: Promise<unknown> }
  >();
  /** Steps start one by one, because concurrent transactions would conflict over the claim. */
  #starting: Promise<unknown> = Promise.resolve();

  constructor(options: StepsOptions) {
    this.#options = options;
  }

  /**
   * @param attempt - of the commit that a hook joins, which calls it again for the next attempt and
   * gets the outcome of the first. Default: 0, outside such hooks.
   * @throws the errors of `ctx.step`.
   */
  async step(
    name: string,
    options: { readonly ifUnknown?: IfUnknown } = {},
    call: (key: string) => unknown,
    attempt = 0,
  ): Promise<unknown> {
    // Plain JavaScript can forget an argument. After the start, its outcome would be unknown.
    assertKnownOptions("ctx.step", options, ["ifUnknown"]);
    if (typeof call !== "function")
      throw new TypeError(`ctx.step: ${quoted(call)} is not a function; pass the call third`);
    const { ifUnknown = "refuse" } = options;
    if (ifUnknown !== "refuse" && ifUnknown !== "retry")
      throw new TypeError(
        `ctx.step: ifUnknown ${JSON.stringify(ifUnknown)} is neither "refuse" nor "retry"`,
      );
    if (typeof name !== "string" || !stepName.test(name))
      throw new TypeError(
        `ctx.step: the name ${JSON.stringify(name)} is not 1 to 64 letters, digits, ".", "_", ":" or "-", starting with a letter or digit`,
      );
    const known = this.#calls.get(name);
    if (known !== undefined && (known.attempt === 0 || known.attempt >= attempt))
      throw new Error(
        `ctx.step: the run has the step ${name} twice; give each a different name, such as ${name}-2`,
      );
    const result = known?.result ?? this.#step(name, ifUnknown, call);
    this.#calls.set(name, { attempt, result });
    return result;
  }

  async #step(
    name: string,
    ifUnknown: IfUnknown,
    call: (key: string) => unknown,
  ): Promise<unknown> {
    const { claim, clock, log, metrics, signal, store, keepMs = defaultKeepMs } = this.#options;
    const key = derivedId("step", claim.seed(), name);
    const place = stepPlace(key, claim.key.tenantId);
    const line = { step: name, stepKey: key };
    signal?.throwIfAborted();
    const found = await this.#begin(name, place, ifUnknown, keepMs);
    const outcome = found === undefined ? "called" : found.status === "DONE" ? "given" : "unknown";
    metrics?.record("keelson.steps", 1, { "keelson.outcome": outcome });
    if (found !== undefined) {
      if (found.status === "DONE") {
        log.debug("step.given", line);
        return this.#load(place, found, line);
      }
      log.error("step.unknown", line);
      throw new UnknownOutcomeError(name, key);
    }
    let result: unknown;
    try {
      result = await inside.run(this, () => call(key));
    } catch (error) {
      // With any other error, the work may be done, so the outcome stays unknown.
      if (this.#saysNotDone(error)) {
        const { owner } = claim;
        await this.#end(
          () => store.end(place, undoneStep(owner, clock.now(), keepMs), owner),
          line,
        );
      }
      throw error;
    }
    return this.#done(place, result, keepMs, line);
  }

  isInside(): boolean {
    return inside.getStore() === this;
  }

  /** Starts a step, after earlier ones. Returns the record if the step must not be called. */
  async #begin(
    name: string,
    place: ClaimKey,
    ifUnknown: IfUnknown,
    keepMs: number,
  ): Promise<StepRecord | undefined> {
    const begun = this.#starting.then(() => this.#start(name, place, ifUnknown, keepMs));
    this.#starting = begun.catch(() => undefined);
    return begun;
  }

  async #start(
    name: string,
    place: ClaimKey,
    ifUnknown: IfUnknown,
    keepMs: number,
  ): Promise<StepRecord | undefined> {
    const { claim, clock, pause, store, facts, isSealed } = this.#options;
    const { key: claimKey, owner } = claim;
    const startedAt = new Date(clock.now()).toISOString();
    const described = { name, ...facts, startedAt, isSealed, keepMs, claim: claimKey };
    let [conflicts, failures] = [0, 0];
    for (;;) {
      const nowMs = clock.now();
      try {
        const step = startedStep(owner, nowMs, keepMs);
        const started = await store.start(place, step, described, ifUnknown, nowMs);
        if (started === "started") return undefined;
        if (started === "fenced") {
          claim.lose();
          throw fenced();
        }
        const record = started === "taken" ? await store.read(place) : undefined;
        // Otherwise, the start conflicted with another write, or the record allows the call by now.
        if (record !== undefined && stepVerdict(record, owner, ifUnknown, nowMs) !== "call")
          return record;
      } catch (error) {
        if (isTypedError(error)) throw error;
        failures += 1;
        // The step has not been called. If only the response was lost, the record is this run's.
        if (failures === maxFailures) throw error;
        await pause(failures);
        continue;
      }
      conflicts += 1;
      if (conflicts === maxConflicts)
        throw new Error(
          `ctx.step: the step ${name} could not be started after ${conflicts} attempts`,
        );
      await pause(conflicts);
    }
  }

  /** Returns the result after a round trip through JSON, as later runs get it. */
  async #done(
    place: ClaimKey,
    result: unknown,
    keepMs: number,
    line: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const { claim, claims, clock, store, cipherOf, isSealed } = this.#options;
    const { owner } = claim;
    const kept = textOf(result);
    const note = async () => {
      const nowMs = clock.now();
      const { expiresAt } = startedStep(owner, nowMs, keepMs);
      const cipher = isSealed ? cipherOf(place) : undefined;
      const stored: StoredResult =
        "unkept" in kept
          ? kept
          : await storeResult(claims, { text: kept.text, place, owner, expiresAt, cipher });
      return store.end(place, doneStep(owner, nowMs, keepMs, stored), owner);
    };
    if (!(await this.#end(note, line))) {
      claim.lose();
      throw fenced();
    }
    if ("unkept" in kept) throw unkept(line, kept.unkept);
    return parsed(kept.text);
  }

  /** Returns `false` if another run or operator has changed the step since. */
  async #end(
    note: () => Promise<boolean>,
    line: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    const { log, pause } = this.#options;
    for (let failures = 1; ; failures += 1) {
      try {
        return await note();
      } catch (error) {
        if (failures === maxFailures) {
          // Later runs see an unknown outcome. This run knows the result and continues.
          log.error("step.unrecorded", { ...line, reason: String(error) });
          return true;
        }
        await pause(failures);
      }
    }
  }

  async #load(
    place: ClaimKey,
    { owner, expiresAt, result }: DoneStep,
    line: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const { claims, cipherOf } = this.#options;
    if (result.unkept !== undefined) throw unkept(line, result.unkept);
    const claim = { ...completedClaim(owner, 0, { result }), expiresAt };
    // Safe cast: `loadAnswer` only calls `readParts`.
    const { body } = await loadAnswer(claims as ClaimStore, place, claim, cipherOf(place));
    return parsed(body as string | undefined); // safe: `storeResult` writes a string
  }

  /** True for any typed error except a timeout, an unknown outcome and the signal's reason. */
  #saysNotDone(error: unknown): boolean {
    const { signal } = this.#options;
    if (!isTypedError(error) || (signal?.aborted === true && error === signal.reason)) return false;
    return error.code !== "timeout" && error.code !== "unknown_outcome";
  }
}

function fenced(): FrameworkError {
  return new FrameworkError("request_in_progress", "Another run of this request has taken over");
}
