import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** Turns of the event loop without a call after which a request counts as blocked. */
const blockedTurns = 100;
/** Turns in which parallel calls of one request arrive. */
const arrivalTurns = 2;
/** Real time without any progress after which an order is stuck. */
const stuckMs = 5_000;
/** Length of a turn while modules are loaded, which takes real time. */
const loadingTurnMs = 3;
/** Most waits in real time of an order that loads modules: an interval must not wait for hours. */
const mostLoads = 5;

/** Finds out when the code of an order goes no further: nothing happens in some turns of the event loop. */
export class Stillness {
  #events = 0;
  #inFlight = 0;
  #loadsLeft: number;

  /** @param isLoading - whether the code may be loading modules. */
  constructor(isLoading: boolean) {
    this.#loadsLeft = isLoading ? mostLoads : 0;
  }

  /** Notes that the code went on. */
  note(): void {
    this.#events += 1;
  }

  /** Runs a call of a store, during which the order is not still. */
  async during<Output>(send: () => Promise<Output>): Promise<Output> {
    this.#inFlight += 1;
    try {
      return await send();
    } finally {
      this.#inFlight -= 1;
      this.note();
    }
  }

  /** @param isKnown - returns whether all code is known to wait for a call, or has ended. */
  async still(isKnown: () => boolean): Promise<void> {
    const isLoading = this.#loadsLeft > 0;
    this.#loadsLeft -= 1;
    for (let turn = 0; turn < (isKnown() ? arrivalTurns : blockedTurns); turn += 1) {
      const before = this.#events;
      await (isLoading ? sleep(loadingTurnMs) : nextTurn());
      if (this.#inFlight > 0 || this.#events !== before) turn = -1;
    }
  }

  /** Waits in real time, for something that is neither a gated call nor a timer of the race. */
  async realProgress(who: string): Promise<void> {
    const before = this.#events;
    const endMs = performance.now() + stuckMs;
    while (this.#events === before) {
      if (performance.now() > endMs) throw new Error(`nothing happens any more; waiting: ${who}`);
      await sleep(1);
    }
  }
}
