import { AsyncResource } from "node:async_hooks";
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import { checkAdvance, type TestClock } from "../app/test-clock.ts";
import { replaced } from "./replaced.ts";
import { seededRandom } from "./search.ts";

/** Timer that fires when the clock of the race moves. */
interface RaceTimer {
  dueMs: number;
  readonly owner: unknown;
  readonly everyMs: number | undefined;
  readonly fire: () => void;
  close(): void;
  ref(): RaceTimer;
  unref(): RaceTimer;
}

/**
 * Replaces the process's clock and random numbers, and the timers of code with an owner. Only
 * `advance` and `next` move the clock.
 */
export class RaceTime implements TestClock {
  readonly #startMs: number;
  readonly #timers = new Set<RaceTimer>();
  readonly #ownerOf: () => unknown;
  #nowMs: number;
  #random = seededRandom(1);
  #restore: (() => void) | undefined;

  /**
   * @param startMs - time at which each order starts, in milliseconds since the epoch.
   * @param ownerOf - returns the owner of the running code. Without one, its timers are real.
   */
  constructor(startMs: number, ownerOf: () => unknown) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
    this.#ownerOf = ownerOf;
  }

  readonly now = (): number => this.#nowMs;

  /** Forgets all timers, and starts the clock and the random numbers again. */
  restart(): void {
    this.#timers.clear();
    this.#nowMs = this.#startMs;
    this.#random = seededRandom(1);
  }

  /** Fires the timers that become due. @throws RangeError like every `TestClock`. */
  advance(ms: number): void {
    checkAdvance(ms);
    this.#nowMs += ms;
    for (const timer of [...this.#timers].sort((one, other) => one.dueMs - other.dueMs))
      if (timer.dueMs <= this.#nowMs) this.#fire(timer);
  }

  /** Moves the clock to the next timer that `isOwn` accepts. Returns `false` without such a timer. */
  next(isOwn: (owner: unknown) => boolean): boolean {
    let next: RaceTimer | undefined;
    for (const timer of this.#timers)
      if (isOwn(timer.owner) && timer.dueMs < (next?.dueMs ?? Number.POSITIVE_INFINITY))
        next = timer;
    if (next === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, next.dueMs);
    this.#fire(next);
    return true;
  }

  #fire(timer: RaceTimer): void {
    if (!this.#timers.has(timer)) return;
    if (timer.everyMs === undefined) timer.close();
    else timer.dueMs = this.#nowMs + timer.everyMs;
    timer.fire();
  }

  #add(fire: () => void, ms: number | undefined, isRepeated: boolean): RaceTimer {
    const waitMs = Math.max(1, Number(ms) || 1);
    const everyMs = isRepeated ? waitMs : undefined;
    const owner = this.#ownerOf();
    const timer: RaceTimer = {
      ...{ dueMs: this.#nowMs + waitMs, owner, everyMs },
      fire: AsyncResource.bind(fire),
      close: () => void this.#timers.delete(timer),
      ref: () => timer,
      unref: () => timer,
    };
    this.#timers.add(timer);
    return timer;
  }

  /** @throws Error while another race has replaced the clock of the process. */
  install(): void {
    if (Date !== Date.prototype.constructor)
      throw new Error("raceEverywhere: another race runs in this process; await it first");
    const { Date: RealDate, setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
    const { random } = Math;
    const { setTimeout: sleep } = timersPromises;
    const now = this.now;
    const ours =
      (real: typeof setTimeout | typeof setInterval, isRepeated: boolean) =>
      (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) =>
        this.#ownerOf() === undefined
          ? real(work, ms, ...given)
          : this.#add(() => work(...given), ms, isRepeated);
    // Safe casts: a timer is one of the race or a real one, which the other side ignores.
    const clear = (real: typeof clearTimeout) => (timer: unknown) =>
      void (this.#timers.delete(timer as RaceTimer) || real(timer as NodeJS.Timeout));
    const slept: typeof sleep = (ms, value, options = {}) => {
      if (this.#ownerOf() === undefined) return sleep(ms, value, options);
      if (options.signal?.aborted) return Promise.reject(options.signal.reason);
      // Safe cast: without a value, the result is undefined.
      const done = Promise.withResolvers<never>();
      const timer = this.#add(() => done.resolve(value as never), ms, false);
      options.signal?.addEventListener("abort", () => {
        timer.close();
        done.reject(options.signal?.reason);
      });
      return done.promise;
    };
    const NewDate = new Proxy(RealDate, {
      construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
      get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
    });
    const ourTimers = {
      setTimeout: ours(setTimeout, false),
      setInterval: ours(setInterval, true),
      clearTimeout: clear(clearTimeout),
      clearInterval: clear(clearInterval),
    };
    const restore = replaced(
      ...Object.entries(ourTimers).map((timer) => [globalThis, ...timer] as const),
      ...Object.entries(ourTimers).map((timer) => [timers, ...timer] as const),
      [timersPromises, "setTimeout", slept],
      [globalThis, "Date", NewDate],
      [Math, "random", () => (this.#ownerOf() === undefined ? random() : this.#random())],
    );
    syncBuiltinESMExports();
    this.#restore = () => {
      restore();
      syncBuiltinESMExports();
    };
  }

  uninstall(): void {
    this.#restore?.();
    this.#timers.clear();
  }
}
