/** Move of an order, as plain data. */
export interface RaceMove {
  /** Name of the request, or `clock`. */
  readonly actor: string;
  /** Operation and tables of the call: `PutItem orders`. */
  readonly call: string;
  readonly kind: "call" | "crash" | "lost answer" | "throttle" | "expiry";
}

export interface RaceChoice extends RaceMove {
  /** Whether the request that made the last call could have continued. */
  readonly isPreemption: boolean;
}

/** The calls differ from the order that is repeated. */
export class RaceMismatch extends Error {}

/** Path through the choices of one order. */
export class RacePath {
  readonly taken: RaceMove[] = [];
  preemptions = 0;
  readonly #prefix: readonly RaceMove[];
  readonly #pick: (choices: readonly RaceChoice[], path: RacePath) => number;

  constructor(
    prefix: readonly RaceMove[],
    pick: (choices: readonly RaceChoice[], path: RacePath) => number,
  ) {
    this.#prefix = prefix;
    this.#pick = pick;
  }

  /** @throws RaceMismatch if the calls differ from the prefix. */
  choose<Choice extends RaceChoice>(choices: readonly Choice[]): Choice {
    const wanted = this.#prefix[this.taken.length];
    const index =
      wanted === undefined
        ? this.#pick(choices, this)
        : choices.findIndex((choice) => isSame(choice, wanted));
    const choice = choices[index];
    if (choice === undefined) throw this.#differs(wanted, choices);
    const { actor, call, kind, isPreemption } = choice;
    this.taken.push({ actor, call, kind });
    this.preemptions += Number(isPreemption);
    return choice;
  }

  /** @throws RaceMismatch if the order has ended before its prefix. */
  end(): void {
    const next = this.#prefix[this.taken.length];
    if (next !== undefined) throw this.#differs(next, []);
  }

  #differs(wanted: RaceMove | undefined, choices: readonly RaceMove[]): RaceMismatch {
    const waiting = choices.filter(({ kind }) => kind === "call").map(moveText);
    return new RaceMismatch(
      `raceEverywhere: the calls differ: move ${this.taken.length + 1} was ${wanted === undefined ? "the end" : moveText(wanted)}, but now ${waiting.join(" and ") || "nothing"} is waiting; the order of a handler's calls must depend on nothing but the stores`,
    );
  }
}

function isSame(one: RaceMove, other: RaceMove): boolean {
  return one.actor === other.actor && one.call === other.call && one.kind === other.kind;
}

function moveText({ actor, call, kind }: RaceMove): string {
  return `${actor}: ${call}${kind === "call" ? "" : ` (${kind})`}`;
}

/**
 * Iterative context bounding (Musuvathi and Qadeer, PLDI 2007): depth first over all orders without
 * a preemption, then over those with one, and so on. Each order is found once.
 */
export class RaceSearch {
  /** Numbers of orders so far, by their preemptions. */
  readonly byPreemptions: number[] = [];
  readonly #mostPreemptions: number;
  readonly #waiting: (readonly RaceMove[])[][] = [[[]]];

  constructor(mostPreemptions: number) {
    this.#mostPreemptions = mostPreemptions;
  }

  next(): RacePath | undefined {
    for (const [preemptions, prefixes] of this.#waiting.entries()) {
      const prefix = prefixes.pop();
      if (prefix === undefined) continue;
      this.byPreemptions[preemptions] = (this.byPreemptions[preemptions] ?? 0) + 1;
      return new RacePath(prefix, (choices, path) => {
        for (const choice of choices.slice(1)) this.#add(choice, path);
        return 0;
      });
    }
    return undefined;
  }

  get isExhausted(): boolean {
    return this.#waiting.every((prefixes) => prefixes.length === 0);
  }

  #add({ isPreemption, actor, call, kind }: RaceChoice, path: RacePath): void {
    const preemptions = path.preemptions + Number(isPreemption);
    if (preemptions > this.#mostPreemptions) return;
    for (let level = this.#waiting.length; level <= preemptions; level += 1) this.#waiting.push([]);
    this.#waiting[preemptions]?.push([...path.taken, { actor, call, kind }]);
  }
}

/** Returns the path of a random order. */
export function randomPath(random: () => number): RacePath {
  return new RacePath([], (choices) => Math.floor(random() * choices.length));
}

/** Returns a generator of numbers in [0, 1), the same ones for each seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
