/**
 * Phases of a run, and the rules for each:
 *
 * | phase | state of the run | effects from the handler | effects from a hook | `ctx.commit` |
 * |---|---|---|---|---|
 * | `before` | runs its `before` hooks | stay | stay | refused |
 * | `open` | runs its handler | join the next attempt | join the next attempt | starts an attempt |
 * | `waiting` | waits for calls started before its attempt | refused | refused | refused |
 * | `joining` | runs its `commit` hooks | refused | join this attempt | refused |
 * | `writing`, `committed`, `ended` | does or has done so | refused | refused | refused |
 * | `unknown` | may have committed | refused | refused | refused |
 *
 * Effects that stay are part of every attempt to commit.
 */
export type RunPhase = "open" | keyof typeof beginRefusals;

export type EffectCaller = "handler" | "hook";

/**
 * Assigns the effects of one run to its attempts to commit. An effect happens if and only if its
 * attempt is written. Pure: the ledger neither stores nor sends effects.
 */
export class EffectLedger<Effect> {
  #phase: RunPhase;
  /** Number of the next attempt to commit, from 1. */
  #attempt = 1;
  readonly #staying: Effect[] = [];
  #joining: Effect[] = [];
  /** Next ordinal by kind and name. */
  #ordinals = new Map<string, number>();
  readonly #ordinalsAtOnce = new Map<string, number>();
  /** Ordinals at the start of the handler. */
  #firstOrdinals: ReadonlyMap<string, number> = new Map();

  /** @param hasHooks - whether `before` hooks run first. */
  constructor(hasHooks: boolean) {
    this.#phase = hasHooks ? "before" : "open";
  }

  get phase(): RunPhase {
    return this.#phase;
  }

  /** Number of effects that the next attempt to commit has. */
  get size(): number {
    return this.#staying.length + this.#joining.length;
  }

  open(): void {
    this.#phase = "open";
    this.#firstOrdinals = new Map(this.#ordinals);
  }

  /**
   * Returns the number of the attempt that a new effect belongs to; 0 for every attempt.
   *
   * @param verb - names the call in the error message, such as "publish".
   * @throws Error if no attempt can take the effect any more.
   */
  start(caller: EffectCaller, call: string, verb: string): number {
    switch (this.#phase) {
      case "before":
        return 0;
      case "open":
        return this.#attempt;
      case "joining":
        if (caller === "hook") return this.#attempt;
    }
    const other =
      call === "ctx.step" || call === "quota.add" ? "" : ", or with { afterCommit: false }";
    throw new Error(
      `${call}: the run ${standings[this.#phase]}; ${verb} before ctx.commit, and in a hook before \`after\`${other}`,
    );
  }

  /**
   * Returns the ordinal of a new effect of a kind and name, from 0. A repeated run and
   * the attempt after a failed one get the same ordinals.
   */
  ordinal(kind: string, name: string): number {
    return next(this.#ordinals, kind, name);
  }

  /** Returns the ordinal of an immediate effect, which no failed attempt resets. */
  ordinalAtOnce(kind: string, name: string): number {
    return next(this.#ordinalsAtOnce, kind, name);
  }

  /** Drops the effect if its attempt has ended. */
  hold(attempt: number, effect: Effect): void {
    if (attempt === 0) this.#staying.push(effect);
    else if (attempt === this.#attempt) this.#joining.push(effect);
  }

  /**
   * Starts an attempt to commit.
   * @throws Error in a hook, and if the run is not `open`. A refused call drops no effects.
   */
  begin(caller: EffectCaller): void {
    if (caller === "hook")
      throw new Error("ctx.commit: a hook commits nothing; return the items from its `commit`");
    if (this.#phase !== "open") throw new Error(`ctx.commit: ${beginRefusals[this.#phase]}`);
    this.#phase = "waiting";
  }

  join(): void {
    this.#phase = "joining";
  }

  /** Closes the attempt, and returns its effects. */
  seal(): readonly Effect[] {
    this.#phase = "writing";
    return [...this.#staying, ...this.#joining];
  }

  /** The attempt was written, or the run ended with nothing to write. */
  written(): void {
    this.#phase = "committed";
  }

  uncertain(): void {
    this.#phase = "unknown";
  }

  /** Returns the effects that the failed attempt drops. The next one derives the same IDs. */
  failed(): readonly Effect[] {
    const dropped = this.#joining;
    this.#joining = [];
    this.#attempt += 1;
    this.#ordinals = new Map(this.#firstOrdinals);
    this.#phase = "open";
    return dropped;
  }

  end(): void {
    if (this.#phase !== "committed") this.#phase = "ended";
  }
}

function next(ordinals: Map<string, number>, kind: string, name: string): number {
  const counted = `${kind} ${name}`;
  const ordinal = ordinals.get(counted) ?? 0;
  ordinals.set(counted, ordinal + 1);
  return ordinal;
}

const standings: Readonly<Record<Exclude<RunPhase, "before" | "open">, string>> = {
  waiting: "is committing",
  joining: "is committing",
  writing: "is committing",
  committed: "has committed",
  unknown: "may have committed",
  ended: "has ended",
};

const once = "a run commits once; put all items into one call";
const beginRefusals = {
  before: "the handler has not started",
  waiting: once,
  joining: once,
  writing: once,
  committed: once,
  unknown: "the run may have committed already; leave it to a retry",
  ended: "the run has ended; await ctx.commit",
};

/**
 * Calls that one run has started. It waits for them, and throws errors that its handler has not
 * observed. So a missing `await` ends neither the process nor the call.
 */
export class StartedEffects {
  readonly #effects = new UnderWay();
  readonly #attempts = new UnderWay();
  readonly #lost: (reason: unknown) => void;
  #failures: { readonly started: WatchedPromise<unknown>; readonly reason: unknown }[] = [];
  #hasEnded = false;

  /** @param lost - receives errors after the run that callers do not observe. */
  constructor(lost: (reason: unknown) => void) {
    this.#lost = lost;
  }

  /** Attempts to commit wait for this call. */
  start<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#watched(this.#effects, work);
  }

  /** Only the end of the run waits for an attempt to commit. */
  attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#watched(this.#attempts, work);
  }

  /**
   * Waits for the calls that were started before an attempt to commit.
   *
   * @throws the first error that the handler could not know when it started the attempt: the call
   * was still in progress, or its result was not observed.
   */
  async beforeAttempt(signal: AbortSignal | undefined): Promise<void> {
    this.#throwUnseen();
    if (this.#effects.size === 0) return;
    const awaited = new Set(this.#effects);
    await this.#effects.quiet(signal);
    const failed = this.#failures.find(({ started }) => awaited.has(started));
    this.#failures = this.#failures.filter(({ started }) => !awaited.has(started));
    if (failed !== undefined) throw failed.reason;
  }

  /**
   * Waits for all calls after the handler has returned or thrown.
   * @throws the first error of a call whose result the handler has not observed.
   */
  async atEnd(signal: AbortSignal | undefined): Promise<void> {
    while (this.#effects.size + this.#attempts.size > 0 && signal?.aborted !== true) {
      await this.#effects.quiet(signal);
      await this.#attempts.quiet(signal);
      // Lets an async function that is not awaited start its next call.
      await new Promise(setImmediate);
    }
    this.#throwUnseen();
  }

  end(): void {
    this.#hasEnded = true;
  }

  #watched<Result>(calls: UnderWay, work: () => Promise<Result>): Promise<Result> {
    // The constructor converts a synchronous throw into a rejection.
    const started = new WatchedPromise<Result>((resolve) => resolve(work()));
    calls.add(started);
    started.watch(
      () => calls.leave(started),
      (reason) => {
        if (!this.#hasEnded) this.#failures.push({ started, reason });
        // Waits, because the caller may be about to observe the error.
        else setImmediate(() => started.isObserved || this.#lost(reason));
        calls.leave(started);
      },
    );
    return started;
  }

  #throwUnseen(): void {
    const unseen = this.#failures.find(({ started }) => !started.isObserved);
    this.#failures = [];
    if (unseen !== undefined) throw unseen.reason;
  }
}

class WatchedPromise<Result> extends Promise<Result> {
  isObserved = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: records calls by `await` and `Promise.all`
  override then<Fulfilled = Result, Rejected = never>(
    fulfilled?: ((value: Result) => Fulfilled | PromiseLike<Fulfilled>) | null,
    rejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    this.isObserved = true;
    return super.then(fulfilled, rejected);
  }

  /** Does not count as observed. */
  watch(fulfilled: () => void, rejected: (reason: unknown) => void): void {
    super.then(fulfilled, rejected);
  }
}

class UnderWay extends Set<WatchedPromise<unknown>> {
  readonly #waiting: (() => void)[] = [];

  leave(started: WatchedPromise<unknown>): void {
    this.delete(started);
    if (this.size === 0) for (const waiting of this.#waiting.splice(0)) waiting();
  }

  quiet(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal?.removeEventListener("abort", end);
        resolve();
      };
      if (this.size === 0 || signal?.aborted === true) return end();
      signal?.addEventListener("abort", end);
      this.#waiting.push(end);
    });
  }
}
