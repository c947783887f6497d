/**
 * Phases of a run, and the rules for each:
 *
 * | phase | state of the run | effects from the handler | effects from a hook | `ctx.commit` |
 * |---|---|---|---|---|
 * | `before` | runs its `before` hooks | stay | stay | refused |
 * | `open` | runs its handler | join the next attempt | join the next attempt | starts an attempt |
 * | `waiting` | waits for calls started before its attempt | refused | refused | refused |
 * | `joining` | runs its `commit` hooks | refused | join this attempt | refused |
 * | `writing` | writes its transaction | refused | refused | refused |
 * | `committed` | has committed | refused | refused | refused |
 * | `unknown` | may have committed | refused | refused | refused |
 * | `ended` | has ended | refused | refused | refused |
 *
 * Effects that stay are part of every attempt to commit.
 */
export type RunPhase =
  | "before"
  | "open"
  | "waiting"
  | "joining"
  | "writing"
  | "committed"
  | "unknown"
  | "ended";

export type EffectCaller = "handler" | "hook";

/** Number of the attempt to commit that an effect belongs to. 0 means every attempt. */
export type AttemptNumber = number;

const standings: Readonly<Record<Exclude<RunPhase, "before" | "open">, string>> = {
  waiting: "is committing",
  joining: "is committing",
  writing: "is committing",
  committed: "has committed",
  unknown: "may have committed",
  ended: "has ended",
};

/**
 * Assigns the effects of one run to its attempts to commit. An effect happens if and only if its
 * attempt is written. Pure: the ledger neither stores nor sends effects.
 */
export class EffectLedger<Effect> {
  #phase: RunPhase;
  #attempt: AttemptNumber = 1;
  readonly #staying: Effect[] = [];
  #joining: Effect[] = [];
  /** Next ordinal by kind and name. Absent until the first effect. */
  #ordinals: Map<string, number> | undefined;
  #ordinalsAtOnce: Map<string, number> | undefined;
  /** Ordinals at the start of the handler. */
  #firstOrdinals: ReadonlyMap<string, number> | undefined;

  /** @param hasHooks - whether `before` hooks run first. */
  constructor(hasHooks: boolean) {
    this.#phase = hasHooks ? "before" : "open";
  }

  get phase(): RunPhase {
    return this.#phase;
  }

  /** Whether no effect waits for a commit. */
  get isEmpty(): boolean {
    return this.#staying.length + this.#joining.length === 0;
  }

  /** Ends the `before` phase. */
  open(): void {
    this.#phase = "open";
    this.#firstOrdinals = copyOf(this.#ordinals);
  }

  /**
   * Returns the attempt that a new effect belongs to.
   *
   * @param verb - names the call in the error message, such as "publish".
   * @throws Error if no attempt can take the effect any more.
   */
  start(caller: EffectCaller, call: string, verb: string): AttemptNumber {
    switch (this.#phase) {
      case "before":
        return 0;
      case "open":
        return this.#attempt;
      case "joining":
        if (caller === "hook") return this.#attempt;
    }
    throw new Error(
      `${call}: the run ${standings[this.#phase]}; ${verb} before ctx.commit, and in a hook before \`after\``,
    );
  }

  /**
   * Returns the ordinal of a new effect of a kind and name, from 0. A repeated run gets the same
   * ordinals, and so does the attempt after a failed one, because `failed` resets them.
   */
  ordinal(kind: string, name: string): number {
    this.#ordinals ??= new Map();
    return next(this.#ordinals, kind, name);
  }

  /** Returns the ordinal of an immediate effect. A failed attempt does not reset the ordinals. */
  ordinalAtOnce(kind: string, name: string): number {
    this.#ordinalsAtOnce ??= new Map();
    return next(this.#ordinalsAtOnce, kind, name);
  }

  /** Adds an effect to its attempt, or drops it if that attempt has ended. */
  hold(attempt: AttemptNumber, effect: Effect): void {
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

  /** Closes the attempt and returns the effects to write. */
  seal(): readonly Effect[] {
    this.#phase = "writing";
    return [...this.#staying, ...this.#joining];
  }

  /** Records that the attempt was written, or that the run ended with nothing to write. */
  written(): void {
    this.#phase = "committed";
  }

  uncertain(): void {
    this.#phase = "unknown";
  }

  /**
   * Records that the attempt failed, and returns its dropped effects. The next attempt derives the
   * same IDs.
   */
  failed(): readonly Effect[] {
    const dropped = this.#joining;
    this.#joining = [];
    this.#attempt += 1;
    this.#ordinals = copyOf(this.#firstOrdinals);
    this.#phase = "open";
    return dropped;
  }

  end(): void {
    if (this.#phase !== "committed") this.#phase = "ended";
  }
}

function copyOf(
  ordinals: ReadonlyMap<string, number> | undefined,
): Map<string, number> | undefined {
  return ordinals === undefined ? undefined : new Map(ordinals);
}

function next(ordinals: Map<string, number>, kind: string, name: string): number {
  const counted = `${kind} ${name}`;
  const ordinal = ordinals.get(counted) ?? 0;
  ordinals.set(counted, ordinal + 1);
  return ordinal;
}

const once = "a run commits once; put all items into one call";
const beginRefusals: Readonly<Record<Exclude<RunPhase, "open">, string>> = {
  before: "the handler has not started",
  waiting: once,
  joining: once,
  writing: once,
  committed: once,
  unknown: "the run may have committed already; leave it to a retry",
  ended: "the run has ended; await ctx.commit",
};
