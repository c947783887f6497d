/** Promise that records whether its caller observes its outcome. */
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

  /** Calls back when the promise settles, without counting as observed. */
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

  /** Waits until no call is left, or the signal aborts. */
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

interface Failure {
  readonly started: WatchedPromise<unknown>;
  readonly reason: unknown;
}

/**
 * Calls that one run has started. The run waits for them, and throws errors that its handler has
 * not observed. So a missing `await` ends neither the process nor the call.
 */
export class StartedEffects {
  readonly #effects = new UnderWay();
  readonly #attempts = new UnderWay();
  readonly #lost: (reason: unknown) => void;
  #failures: Failure[] = [];
  #hasEnded = false;

  /** @param lost - receives errors that occur after the run and that callers do not observe. */
  constructor(lost: (reason: unknown) => void) {
    this.#lost = lost;
  }

  /** Starts a call. Attempts to commit wait for it. */
  start<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#watched(this.#effects, work);
  }

  /** Starts an attempt to commit. Only the end of the run waits for it. */
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
