import { CrashError, type GatedCall, lostAnswer, pastLeaseMs } from "../app/faults.ts";
import { untilCrash } from "../app/test-process.ts";
import type { RaceChoice, RaceMove, RacePath } from "./search.ts";
import type { Stillness } from "./stillness.ts";
import {
  callText,
  type RaceActor,
  type RaceDisturbances,
  type RaceLife,
  type RaceStep,
  type RaceTask,
  raceTasks,
} from "./task.ts";
import type { RaceTime } from "./time.ts";

interface Waiting {
  readonly actor: RaceActor;
  readonly life: RaceLife | undefined;
  readonly call: string;
  /** Sends the call. Returns its error, and how to report its answer. */
  send(): Promise<{ readonly error?: unknown; readonly report: () => void }>;
  fail(error: Error): void;
}

/** Call that an order may send next, or a request that it may start. */
type Open = Pick<Waiting, "actor" | "call"> & Partial<Waiting>;

interface Choice extends RaceChoice {
  readonly open?: Open;
}

const mostMoves = 2_000;
const expiryMove: RaceMove = { actor: "clock", call: "past a lease", kind: "expiry" };

/** One order: each call waits until the order picks it. */
export class RaceOrder {
  readonly steps: RaceStep[] = [];
  /** Number of calls of frames. */
  framed = 0;
  readonly #path: RacePath;
  readonly #time: RaceTime;
  readonly #left: Record<"crash" | "lost answer" | "throttle" | "expiry", number>;
  readonly #actors: readonly RaceActor[];
  readonly #stillness: Stillness;
  #waiting: Waiting[] = [];
  #last: RaceActor | undefined;
  #isOver = false;

  constructor(
    path: RacePath,
    time: RaceTime,
    names: readonly string[],
    { crashes = 0, lostAnswers = 0, throttles = 0, expiries = 0 }: RaceDisturbances,
    stillness: Stillness,
  ) {
    this.#stillness = stillness;
    this.#path = path;
    this.#time = time;
    const left = { crash: crashes, "lost answer": lostAnswers, throttle: throttles };
    this.#left = { ...left, expiry: expiries };
    this.#actors = names.map((name, index) => ({
      ...{ index, name, state: "waiting" },
      started: Promise.withResolvers<void>(),
    }));
  }

  /** Passes on the calls of frames. The calls of requests wait. */
  async gate<Output>(
    { actor, life }: RaceTask,
    call: GatedCall,
    send: () => Promise<Output>,
  ): Promise<Output> {
    if (this.#isOver) throw new CrashError();
    life?.signal.throwIfAborted();
    if (actor === undefined) {
      this.framed += 1;
      return this.#stillness.during(send);
    }
    const answer = Promise.withResolvers<Output>();
    this.#stillness.note();
    this.#waiting.push({
      actor,
      life,
      call: this.#callText(actor, call),
      send: () =>
        this.#stillness.during(send).then(
          (output) => ({ report: () => answer.resolve(output) }),
          (error: unknown) => ({ error, report: () => answer.reject(error) }),
        ),
      fail: answer.reject,
    });
    return answer.promise;
  }

  /** Numbers equal calls that wait at the same time. */
  #callText(actor: RaceActor, call: GatedCall): string {
    const text = callText(call);
    const isTaken = (name: string) =>
      this.#waiting.some((other) => other.actor === actor && other.call === name);
    let name = text;
    for (let number = 2; isTaken(name); number += 1) name = `${text} (${number})`;
    return name;
  }

  /** Runs code whose calls are not choices, and moves the clock if it waits for it. */
  async frame<Result>(work: () => Promise<Result> | Result): Promise<Result> {
    const task: RaceTask = { order: this, actor: undefined, life: undefined };
    let isDone = false;
    const ended = raceTasks
      .run(task, async () => work())
      .finally(() => {
        isDone = true;
        this.#stillness.note();
      });
    ended.catch(() => undefined);
    const isOwn = (owner: unknown) => (owner as RaceTask).actor === undefined; // safe: every owner is a task
    while (!isDone) {
      await this.#stillness.still(() => isDone);
      if (!isDone && !this.#time.next(isOwn))
        await this.#stillness.realProgress("the frame of an order");
    }
    return ended;
  }

  /** Waits until nothing goes on that a frame has started and not awaited, such as sending events. */
  rest(): Promise<void> {
    return this.#stillness.still(() => false);
  }

  /** @throws an error of `invariant`; RaceMismatch if a replay does not fit; Error if all are stuck. */
  async run<Result>(
    requests: readonly (() => Promise<Result>)[],
    invariant: (() => Promise<void> | void) | undefined,
  ): Promise<PromiseSettledResult<Result>[]> {
    const results = this.#actors.map(async (actor, index) => {
      await actor.started.promise;
      try {
        // A separate process, unless the app has processes.
        const end = new AbortController();
        const life = { signal: end.signal, crash: () => end.abort(new CrashError()) };
        const task: RaceTask = { order: this, actor, life };
        // Safe cast: there is an actor for each request.
        const work = async () => requests[index]?.() as Promise<Result>;
        return await untilCrash(life, raceTasks.run(task, work));
      } finally {
        actor.state = "done";
        this.#stillness.note();
      }
    });
    const settled = Promise.allSettled(results);
    for (;;) {
      await this.#allStill();
      const choices = this.#choices();
      if (choices.length > 0) {
        if (this.steps.length === mostMoves)
          throw new Error(`an order has over ${mostMoves} moves`);
        await this.#make(this.#path.choose(choices));
        if (invariant !== undefined) await this.frame(invariant);
      } else if (this.#actors.every(({ state }) => state === "done")) break;
      else if (!this.#time.next(() => true)) await this.#stillness.realProgress(this.#blocked());
    }
    this.#path.end();
    return settled;
  }

  /** Fails all calls that the order's code still makes. */
  end(): void {
    this.#isOver = true;
    for (const { fail } of this.#waiting) fail(new CrashError());
    this.#waiting = [];
  }

  #allStill(): Promise<void> {
    return this.#stillness.still(() =>
      this.#actors.every((actor) => actor.state !== "running" || this.#waits(actor)),
    );
  }

  #waits(actor: RaceActor): boolean {
    return this.#waiting.some((waiting) => waiting.actor === actor);
  }

  #blocked(): string {
    return this.#actors
      .filter(({ state }) => state !== "done")
      .map(({ name }) => name)
      .join(", ");
  }

  #choices(): Choice[] {
    const last = this.#last;
    const canContinue = last !== undefined && this.#waits(last);
    const rank = ({ actor }: Open) => (actor === last ? -1 : actor.index);
    const open = [
      ...this.#waiting,
      ...this.#actors
        .filter(({ state }) => state === "waiting")
        .map((actor) => ({ actor, call: "start" })),
    ];
    const calls = open
      .sort((one, other) => rank(one) - rank(other))
      .map((waiting): Choice => {
        const { actor, call } = waiting;
        const isPreemption = canContinue && actor !== last;
        return { actor: actor.name, call, kind: "call", isPreemption, open: waiting };
      });
    const disturbed = (["crash", "lost answer", "throttle"] as const)
      .filter((kind) => this.#left[kind] > 0)
      .flatMap((kind) => calls.map((call) => ({ ...call, kind })));
    const expiry = { ...expiryMove, isPreemption: false };
    return [...calls, ...disturbed, ...(calls.length > 0 && this.#left.expiry > 0 ? [expiry] : [])];
  }

  async #make({ actor, call, kind, open }: Choice): Promise<void> {
    if (kind !== "call") this.#left[kind] -= 1;
    this.#time.advance(kind === "expiry" ? pastLeaseMs : 1);
    if (open === undefined) return void this.steps.push({ actor, call, kind, outcome: "done" });
    this.#last = open.actor;
    const waiting = isWaiting(open) ? open : await this.#started(open.actor);
    if (waiting === undefined) this.steps.push({ actor, call, kind, outcome: open.actor.state });
    else
      this.steps.push({
        actor,
        call: waiting.call,
        kind,
        outcome: await this.#perform(waiting, kind),
      });
  }

  /** Starts a request. Returns its first call, unless it makes several at the same time. */
  async #started(actor: RaceActor): Promise<Waiting | undefined> {
    actor.state = "running";
    actor.started.resolve();
    await this.#allStill();
    const [first, second] = this.#waiting.filter((waiting) => waiting.actor === actor);
    return second === undefined ? first : undefined;
  }

  async #perform(waiting: Waiting, kind: RaceMove["kind"]): Promise<string> {
    this.#waiting = this.#waiting.filter((other) => other !== waiting);
    if (kind === "throttle") {
      const name = "ProvisionedThroughputExceededException";
      waiting.fail(Object.assign(new Error("throttled by the race"), { name }));
      return "throttled";
    }
    const { error, report } = await waiting.send();
    if (kind === "crash") this.#crash(waiting);
    else if (kind === "lost answer")
      waiting.fail(Object.assign(new Error("socket hang up"), lostAnswer));
    else report();
    return error === undefined ? "done" : String((error as Partial<Error>).name); // safe: any member may be absent
  }

  #crash({ life, fail }: Waiting): void {
    life?.crash();
    fail(new CrashError());
    for (const other of this.#waiting.filter((one) => one.life === life))
      other.fail(new CrashError());
    this.#waiting = this.#waiting.filter((one) => one.life !== life);
  }
}

function isWaiting(open: Open): open is Waiting {
  return open.send !== undefined;
}
