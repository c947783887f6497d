import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** Turns of the event loop without a call after which a request counts as blocked. */
const blockedTurns = 100;
/** Turns in which parallel calls of one request arrive. */
const arrivalTurns = 2;
/** Real time without any progress after which an order is stuck. */
const stuckMs = 5_000;
/** Real time in which a module is loaded, also on a busy machine. */
const quietMs = 250;

/** Finds out when the code of an order goes no further: nothing happens in some turns of the event loop. */
export class Stillness {
  #events = 0;
  #inFlight = 0;

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
    for (let turn = 0; turn < (isKnown() ? arrivalTurns : blockedTurns); turn += 1) {
      const before = this.#events;
      await nextTurn();
      if (this.#inFlight > 0 || this.#events !== before) turn = -1;
    }
  }

  /** Waits until nothing happens for a while in real time, because a module that loads takes many turns. */
  async quiet(): Promise<void> {
    for (let before = -1; this.#events !== before || this.#inFlight > 0; ) {
      before = this.#events;
      await sleep(quietMs);
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
