import { errorLog } from "../../base/errors/describe.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { noAnswer, saysNotDone, type WriteAnswer } from "../../parts/once/answer.ts";
import type { Run, RunOutcome } from "../../parts/once/claimed-run.ts";
import { assertActions } from "../../parts/once/run-commit.ts";
import type { Effects } from "../handlers/effects.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { createContexts } from "./context.ts";
import { type EffectCaller, EffectLedger, StartedEffects } from "./effect-ledger.ts";
import {
  type EffectRun,
  type HeldCount,
  type HeldEffect,
  itemsOf,
  sendEffects,
} from "./effect-run.ts";
import { RunEffects } from "./effects.ts";
import type { RunCalls, RunHooks, Work } from "./work.ts";

/**
 * Runs a handler that has effects, of whatever kind: claim, context, effects, commit, settle.
 *
 * @throws the errors of `performClaimed`.
 */
export async function run<Result>(
  scope: RequestScope,
  adapters: Adapters,
  work: Work<Result>,
): Promise<RunOutcome<Result>> {
  const { runtime, log, signal, spans } = scope;
  const { claim, nowMs, logPrefix, answerOf } = work;
  const runs = runtime.runs.value ?? (await runtime.runs.open());
  const { tenantId } = scope.user;
  const given: Run<Result> = {
    claim,
    nowMs,
    logPrefix,
    log,
    signal,
    tenantId,
    answerOf,
    work: (parts) => {
      const run = spans?.committing(parts) ?? parts;
      return perform({ scope, log, adapters, runs, run, work });
    },
  };
  const outcome = await (spans === undefined
    ? runs.once.run(given)
    : spans.claimed(given, (run) => runs.once.run(run)));
  if (outcome.kind === "replayed") scope.isReplayed = true;
  return outcome;
}

async function perform<Result>(parts: CommitParts<Result>): Promise<Result> {
  const { scope, log, adapters, run, work } = parts;
  // A request without a signal does not get the signal of a run that others share.
  if (scope.signal !== undefined) scope.runSignal = run.signal;
  const { request, hooks } = work;
  let { input } = work;
  const commits = new RunCommits(parts);
  const contexts = createContexts(scope, adapters, { request, commits, log });
  let returned: unknown;
  try {
    if (hooks !== undefined) {
      input = await hooks.before(contexts.of("hook"), input);
      commits.open();
    }
    returned = await work.handle(contexts.of("handler"), input, run);
  } catch (error) {
    await commits.abandon();
    throw error;
  } finally {
    scope.isHandlerOver = true;
  }
  return commits.settle(returned);
}

export interface CommitParts<Result>
  extends Pick<EffectRun, "scope" | "log" | "adapters" | "runs" | "run"> {
  readonly work: Work<Result>;
}

interface Attempt {
  readonly items: readonly CommitItem[];
  readonly answer: WriteAnswer;
  /** Whether the answer is stored, so that the claim is completed with the items. */
  readonly isStored: boolean;
}

export class RunCommits<Result> implements RunCalls {
  readonly #parts: CommitParts<Result>;
  #begun: Begun | undefined;
  #effects: RunEffects | undefined;
  readonly #callers: Partial<Record<EffectCaller, Effects>> = {};
  #hasCommitted = false;
  #hasEnded = false;

  constructor(parts: CommitParts<Result>) {
    this.#parts = parts;
  }

  open(): void {
    this.#begin().ledger.open();
  }

  start<Started>(
    caller: EffectCaller,
    work: (effects: Effects) => Promise<Started>,
  ): Promise<Started> {
    const { started } = this.#begin();
    const effects = this.#effectsOf(caller);
    return started.start(() => work(effects));
  }

  commit<Committed>(
    caller: EffectCaller,
    items: readonly CommitItem[],
    result: Committed,
  ): Promise<Committed> {
    const { ledger, started } = this.#begin();
    return started.attempt(async () => {
      if (this.#effects?.isInStep() === true)
        throw new Error("ctx.commit: a step commits nothing; commit once it has returned");
      ledger.begin(caller);
      await this.#attempt(async () => {
        const { hooks, committing } = this.#parts.work;
        const own = this.#checked(items);
        const { result: received, answer } =
          committing === undefined ? { result, answer: noAnswer } : await committing(result);
        return {
          items: hooks === undefined ? own : [...own, ...(await this.#joining(hooks, received))],
          answer,
          isStored: true,
        };
      });
      return result;
    });
  }

  /**
   * Ends the run of a handler that has returned, and commits the effects that still wait.
   * @throws the first error that the handler has not awaited, or any error of the commit.
   */
  async settle(returned: unknown): Promise<Result> {
    const { run, work } = this.#parts;
    await this.#begun?.started.atEnd(run.signal);
    // Safe cast: without `receive` the returned value is the result.
    const result = (
      work.receive === undefined || this.#hasCommitted ? returned : await work.receive(returned)
    ) as Result;
    await this.#commitRest(result);
    this.#end();
    if (work.own !== undefined && !this.#hasCommitted)
      await run.commit([], this.#answerOf(result), work.own());
    return result;
  }

  /** Ends the run of a handler that has thrown. */
  async abandon(): Promise<void> {
    await this.#begun?.started.atEnd(this.#parts.run.signal).catch(() => undefined); // the handler's error takes precedence
    this.#end();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#begun?.ledger.end();
    this.#begun?.started.end();
  }

  #begin(): Begun {
    if (this.#begun === undefined) {
      const { log, work } = this.#parts;
      const lost = (error: unknown) => log.error("effects.lost", errorLog(error).data);
      const ledger = new EffectLedger<HeldEffect | HeldCount>(work.hooks !== undefined);
      this.#begun = { ledger, started: new StartedEffects(lost) };
      if (this.#hasEnded) this.#end();
    }
    return this.#begun;
  }

  #effectsOf(caller: EffectCaller): Effects {
    const { ledger } = this.#begin();
    const { cause } = this.#parts.work;
    this.#effects ??= new RunEffects({ ...this.#parts, ledger }, cause);
    this.#callers[caller] ??= this.#effects.of(caller);
    return this.#callers[caller];
  }

  #answerOf(result: Result): WriteAnswer {
    return this.#parts.work.answerOf?.(result) ?? noAnswer;
  }

  /** Commits waiting effects, unless the response reports that nothing was done. */
  async #commitRest(result: Result): Promise<void> {
    if (this.#begun?.ledger.phase !== "open") return;
    const { ledger } = this.#begun;
    const { hooks } = this.#parts.work;
    if (hooks === undefined && ledger.size === 0) return ledger.written();
    const answer = this.#answerOf(result);
    if (saysNotDone(answer)) return;
    ledger.begin("handler");
    // An answer with cookies is never stored, so its claim is released instead of completed.
    const isStored = answer.cookies.length === 0;
    await this.#attempt(async () => {
      const items = hooks === undefined ? [] : await this.#joining(hooks, result);
      return ledger.size === 0 && items.length === 0 ? undefined : { items, answer, isStored };
    });
  }

  /** Writes one attempt, if there is any, and sends its effects. */
  async #attempt(make: () => Promise<Attempt | undefined>): Promise<void> {
    const { run } = this.#parts;
    const { ledger, started } = this.#begin();
    let effects: readonly HeldEffect[] = [];
    try {
      await started.beforeAttempt(run.signal);
      const attempt = await make();
      if (attempt !== undefined) {
        const held = ledger.seal();
        const counts = held.filter((effect) => effect.kind === "quota");
        effects = distinct(held.filter((effect) => effect.kind !== "quota"));
        await this.#write(attempt, effects, counts);
      }
      ledger.written();
    } catch (error) {
      if (run.isCommitUncertain()) ledger.uncertain();
      else this.#drop(ledger.failed());
      throw error;
    }
    const { scope } = this.#parts;
    if (effects.length > 0) await sendEffects(scope, this.#parts, effects);
  }

  async #write(
    { items, answer, isStored }: Attempt,
    effects: readonly HeldEffect[],
    counts: readonly HeldCount[],
  ): Promise<void> {
    const { adapters, run, work } = this.#parts;
    const own = effects.flatMap((effect) => itemsOf(adapters, effect));
    own.push(...(work.own?.() ?? []));
    const contested = counts.length === 0 ? [] : [await contestedItems(adapters, counts)];
    await (isStored
      ? run.commit(items, answer, own, ...contested)
      : run.commitApart(items, own, ...contested));
    this.#hasCommitted = isStored;
  }

  #drop(effects: readonly (HeldEffect | HeldCount)[]): void {
    if (effects.length === 0) return;
    const types = [...new Set(effects.map(({ kind, name }) => `${kind} ${name}`))];
    this.#parts.log.info("effects.dropped", { types, number: effects.length });
  }

  /** Returns the items of the `commit` hooks. */
  async #joining(hooks: RunHooks, result: unknown): Promise<readonly CommitItem[]> {
    const { ledger, started } = this.#begin();
    ledger.join();
    const items = this.#checked(await hooks.itemsOf(result));
    await started.beforeAttempt(this.#parts.run.signal);
    return items;
  }

  #checked(items: readonly CommitItem[]): readonly CommitItem[] {
    const { adapters, log, scope } = this.#parts;
    const { user, handler } = scope;
    const caller = { tenantId: user.tenantId, log, handler, assertActions };
    return adapters.wall?.checkItems(items, caller) ?? items;
  }
}

/** Merges deliveries with the same key, because DynamoDB rejects writing a row twice. */
function distinct(effects: readonly HeldEffect[]): readonly HeldEffect[] {
  if (effects.length < 2) return effects;
  return [
    ...new Map(effects.toReversed().map((effect) => [effect.row.eventId, effect])).values(),
  ].toReversed();
}

async function contestedItems({ quotas }: Adapters, counts: readonly HeldCount[]) {
  const { contested, merged } = await import("../../parts/limits/quota-change.ts");
  const store = quotas.value ?? (await quotas.open());
  return merged(counts.map(({ change }) => change)).map((change) => contested(store, change));
}

interface Begun {
  readonly ledger: EffectLedger<HeldEffect | HeldCount>;
  readonly started: StartedEffects;
}
