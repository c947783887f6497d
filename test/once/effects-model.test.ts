import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { RunCommits } from "../../src/app/ctx/run.ts";
import type { Work } from "../../src/app/ctx/work.ts";
import type { Adapters } from "../../src/app/runtime/adapters.ts";
import type { RunServices } from "../../src/app/runtime/run-services.ts";
import type { RequestScope } from "../../src/app/runtime/scope.ts";
import type { OutboxRow } from "../../src/parts/messages/outbox-store.ts";
import type { WriteAnswer } from "../../src/parts/once/answer.ts";
import { claimKey } from "../../src/parts/once/claim.ts";
import type { TransactionItem } from "../../src/parts/once/claim-store.ts";
import type { RunParts } from "../../src/parts/once/claimed-run.ts";
import type { OnceClaim } from "../../src/parts/once/claims.ts";
import { derivedId } from "../../src/parts/once/derived-id.ts";
import { createOnce } from "../../src/parts/once/once.ts";
import { type Fate, startProcess, storeOf, timersOf, World } from "./world.ts";

const runs = 1_500;
/** Printed with the result: `SEED=…` repeats it. */
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);

/** One thing that a handler does. Effects are numbered by the attempt that they belong to. */
type Deed =
  | { readonly kind: "publish" | "deliver" | "later"; readonly isAwaited: boolean }
  /** It does not fit its schema. */
  | { readonly kind: "misfit"; readonly how: "caught" | "forgotten" | "thrown" }
  | {
      readonly kind: "commit";
      readonly holds: boolean;
      readonly how: "caught" | "thrown" | "forgotten";
    }
  | { readonly kind: "step" | "turn" };
/** How a handler ends. */
type End = "returns" | "throws" | "refuses" | "sets a cookie";
interface Program {
  readonly process: number;
  /** What a `before` hook publishes, and a `commit` hook in each attempt; absent without hooks. */
  readonly hooks: { readonly before: number; readonly commit: number } | undefined;
  readonly deeds: readonly Deed[];
  readonly end: End;
}

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom("publish" as const, "deliver" as const, "later" as const),
      isAwaited: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("misfit" as const),
      how: fc.constantFrom("caught" as const, "forgotten" as const, "thrown" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("commit" as const),
      holds: fc.boolean(),
      how: fc.constantFrom(
        "caught" as const,
        "caught" as const,
        "thrown" as const,
        "forgotten" as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("step" as const, "turn" as const) }) },
);
const program: fc.Arbitrary<Program> = fc.record({
  process: fc.nat(1),
  hooks: fc.option(fc.record({ before: fc.nat(2), commit: fc.nat(2) }), { nil: undefined }),
  deeds: fc.array(deed, { maxLength: 8 }),
  end: fc.constantFrom<End>("returns", "returns", "returns", "throws", "refuses", "sets a cookie"),
});
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Fate>("fine") },
  fc.constantFrom<Fate>(
    "fails",
    "answer lost",
    "process dies before",
    "process dies after",
    "conflict",
  ),
);
const scenario = fc.record({
  isClaimed: fc.boolean(),
  programs: fc.array(program, { minLength: 1, maxLength: 3 }),
  fates: fc.array(fate, { maxLength: 15 }),
  jumps: fc.array(
    fc.oneof({ weight: 6, arbitrary: fc.nat(2_000) }, fc.constantFrom(11_000, 33_000)),
    { maxLength: 15 },
  ),
});

test(`${runs} programs of effects and commits: each effect happens as often as its attempt, with an ID set by its place there`, async () => {
  const met = new Map<string, number>();
  const count = (what: string) => met.set(what, (met.get(what) ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      scenario,
      async (scheduler, { isClaimed, programs, fates, jumps }) => {
        const world = new World();
        const left = { fates: [...fates], jumps: [...jumps] };
        const turn = async (call: string): Promise<Fate> => {
          await scheduler.schedule(Promise.resolve(), call);
          const jump = left.jumps.shift() ?? 0;
          world.nowMs += jump;
          if (jump > 10_000) for (const { timers } of processes) timers.tick();
          return left.fates.shift() ?? "fine";
        };
        const processes = [0, 1].map((n) => {
          const own = startProcess(`p${n}`);
          const timers = timersOf(world, own, turn);
          const store = storeOf(world, own, turn);
          const clock = { now: () => world.nowMs };
          let owners = 0;
          const draining = new AbortController().signal;
          const newOwner = () => `p${n}-${++owners}`;
          const once = createOnce({
            store,
            clock,
            schedule: timers,
            waitMs: 10_000,
            draining,
            newOwner,
          });
          return { own, timers, once, clock };
        });
        const made: Attempts[] = [];
        const settled = programs.map(async (given, nth) => {
          const { own, once, clock } = processes[given.process] as (typeof processes)[number]; // safe: there are two
          const work = async (parts: RunParts) => {
            const attempts = new Attempts(`${nth}`);
            made.push(attempts);
            return perform(parts, { program: given, attempts, turn, clock, once });
          };
          const claim = isClaimed ? write : undefined;
          const ended = once.run({
            claim,
            logPrefix: "once",
            log,
            signal: undefined,
            work,
            answerOf: (answer) => answer,
          });
          await Promise.race([ended.catch(() => undefined), own.end]);
        });
        await scheduler.waitFor(Promise.all(settled));

        expect(world.violations).toEqual([]);
        for (const transaction of world.transactions) {
          const effects = transaction.flatMap((item) => effectIn(item) ?? []);
          const [first] =
            effects.length > 0 ? effects : transaction.flatMap((item) => markIn(item) ?? []);
          if (first === undefined) continue;
          const attempts = made.find(({ run }) => run === first.run);
          const expected = attempts?.of(
            first.attempt,
            transaction.flatMap((item) => markIn(item) ?? [])[0]?.attempt,
          );
          // All that belongs to this attempt, and nothing else.
          expect(effects.map(({ name }) => name).sort()).toEqual([...(expected ?? [])].sort());
          count(
            transaction.some((item) => markIn(item) !== undefined) ? "committed" : "at the end",
          );
          // Failed attempts have given their ordinals back: an attempt derives its IDs from what was asked for in it alone.
          if (!isClaimed) continue;
          const mark = transaction.flatMap((item) => markIn(item) ?? [])[0]?.attempt;
          const ids = Array.from(
            { length: attempts?.askedIn(first.attempt, mark) ?? 0 },
            (_, ordinal) => derivedId(seedOf(world), "event", "deed.done", ordinal),
          );
          for (const { kind, id } of effects) if (kind === "event") expect(ids).toContain(id);
        }
        const written = world.transactions.flatMap((transaction) =>
          transaction.flatMap((item) => effectIn(item)?.name ?? []),
        );
        expect(new Set(written).size).toBe(written.length);
        // A claim has one attempt that is written, whatever crashes; answers with cookies release it.
        if (isClaimed && programs.every(({ end }) => end !== "sets a cookie")) {
          expect(
            world.transactions.filter((items) =>
              items.some((item) => effectIn(item) ?? markIn(item)),
            ).length,
          ).toBeLessThanOrEqual(1);
        }
      },
    ),
    { numRuns: runs, endOnFailure: true, seed },
  );
  console.log(
    `effects: seed ${seed}, ${runs} programs; ${[...met].map(([what, times]) => `${what}: ${times}`).join(", ")}`,
  );
  for (const what of ["committed", "at the end"]) expect(met.get(what)).toBeGreaterThan(50);
});

/** What the table in docs/commit.md says of one run: the effects of each attempt. */
class Attempts {
  static #runs = 0;
  readonly run: string;
  current = 1;
  readonly #stays: string[] = [];
  readonly #joins = new Map<number, string[]>();
  readonly #asked = new Map<number, number>();

  constructor(request: string) {
    Attempts.#runs += 1;
    this.run = `${request}.${Attempts.#runs}`;
  }

  /** An event is asked for. */
  ask(attempt: number): void {
    this.#asked.set(attempt, (this.#asked.get(attempt) ?? 0) + 1);
  }

  /** How many events were asked for by an attempt, with those that stay. */
  askedIn(attempt: number, marked: number | undefined): number {
    return (this.#asked.get(0) ?? 0) + (this.#asked.get(this.#numberOf(attempt, marked)) ?? 0);
  }

  /** An effect that its call has accepted. */
  add(attempt: number, name: string): void {
    if (attempt === 0) this.#stays.push(name);
    else this.#joins.set(attempt, [...(this.#joins.get(attempt) ?? []), name]);
  }

  /** All effects that are written with an attempt; one that only has effects that stay is the one that is marked, or the last. */
  of(attempt: number, marked: number | undefined): readonly string[] {
    return [...this.#stays, ...(this.#joins.get(this.#numberOf(attempt, marked)) ?? [])];
  }

  #numberOf(attempt: number, marked: number | undefined): number {
    return marked ?? (attempt === 0 ? this.current : attempt);
  }
}

interface Performing {
  readonly program: Program;
  readonly attempts: Attempts;
  readonly clock: { now(): number };
  readonly once: RunServices["once"];
  turn(call: string): Promise<unknown>;
}

/** Runs a program as `run` runs a handler. */
async function perform(
  parts: RunParts,
  { program, attempts, clock, once, turn }: Performing,
): Promise<WriteAnswer> {
  const { run } = attempts;
  let effects = 0;
  const named = (attempt: number) => `${run} ${attempt} ${++effects}`;
  /** Asks for an effect of the attempt that comes next, and notes it once the call has accepted it. */
  const ask = (
    caller: "handler" | "hook",
    kind: "publish" | "deliver" | "later",
    attempt: number,
  ): Promise<void> => {
    const name = named(attempt);
    if (kind === "publish") attempts.ask(attempt);
    const asked = commits.start<unknown>(caller, (of) => {
      if (kind === "publish") return of.publish("deed.done", { name });
      return kind === "deliver"
        ? of.deliver("board" as never, { name } as never)
        : of.enqueue("deed.work", { name }, { delaySeconds: 60 });
    });
    return asked.then(() => attempts.add(attempt, name));
  };
  const answer = (): WriteAnswer => ({
    status: program.end === "refuses" ? 409 : 200,
    headers: {},
    cookies: program.end === "sets a cookie" ? ["a=1"] : [],
    body: undefined,
  });
  const { hooks } = program;
  const work: Work<WriteAnswer> = {
    claim: undefined,
    logPrefix: "once",
    cause: { causedBy: "r", origRequestId: "r", tenantId: "acme", userId: "ann" },
    handle: answer,
    answerOf: (result) => result,
    committing: (result) => ({ result, answer: { ...answer(), status: 200, cookies: [] } }),
    hooks: hooks && {
      before: async () => undefined,
      itemsOf: async () => {
        for (let nth = 0; nth < hooks.commit; nth += 1) {
          const asked = ask("hook", "publish", attempts.current);
          if (nth === 0) await asked;
        }
        return [];
      },
    },
  };
  const runs = runsOf(once);
  const commits = new RunCommits({ scope: scopeOf(clock), log, adapters, runs, run: parts, work });
  try {
    if (hooks !== undefined) {
      for (let nth = 0; nth < hooks.before; nth += 1) await ask("hook", "publish", 0);
      commits.open();
    }
    for (const deed of program.deeds) {
      await act(deed);
      // From here on nobody could tell which attempt an effect joins.
      if (deed.kind === "commit" && deed.how === "forgotten") break;
    }
    if (program.end === "throws") throw new Error("the handler failed");
  } catch (error) {
    await commits.abandon();
    throw error;
  }
  return commits.settle(answer());

  async function act(deed: Deed): Promise<void> {
    switch (deed.kind) {
      case "turn":
        await turn("handler");
        return;
      case "step":
        // A step needs stores of its own: what counts here is a call that takes its time.
        await commits.start("handler", () => turn("step"));
        return;
      case "misfit": {
        attempts.ask(attempts.current);
        const asked = commits.start("handler", (of) => of.publish("deed.done", { name: 1 }));
        if (deed.how === "caught") await asked.catch(() => undefined);
        if (deed.how === "thrown") await asked;
        return;
      }
      case "commit": {
        const attempt = attempts.current;
        const condition: TransactionItem[] = deed.holds ? [] : [{ ConditionCheck: "never" }];
        const committed = commits.commit(
          "handler",
          [{ Put: { mark: { run, attempt } } }, ...condition] as never,
          undefined,
        );
        if (deed.how === "forgotten") return;
        await committed.catch((error: unknown) => {
          // What is asked for from now on belongs to the next attempt. A commit that is refused is none.
          if (!/commits once|may have committed/.test(String(error))) attempts.current += 1;
          if (deed.how === "thrown") throw error;
        });
        return;
      }
      default: {
        const asked = ask("handler", deed.kind, attempts.current);
        // Refused after a commit: the program goes on.
        if (deed.isAwaited) await asked.catch(() => undefined);
        else asked.catch(() => undefined);
      }
    }
  }
}

const log = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {}, child: () => log };
const write: OnceClaim = {
  kind: "write",
  key: claimKey(["model"], "r1"),
  replayedHeaders: [],
  deadlineMs: undefined,
};

/** The parts of a scope that effects look at. */
function scopeOf(clock: { now(): number }): RequestScope {
  const schema = z.object({ name: z.string() });
  const registry = {
    events: new Map([["deed.done", { schema }]]),
    jobs: new Map([["deed.work", { input: schema }]]),
    channels: new Map(),
    consumers: new Map(),
  };
  const messages = {
    open: async () => ({ signEvent: async () => undefined, signJob: async () => undefined }),
  };
  const channels = new Map([["board", { input: schema }]]);
  const runtime = {
    server: { registry },
    clock,
    messages,
    channels,
    deliveryJob: {},
    environment: "test",
  };
  return {
    runtime,
    log,
    user: { tenantId: "acme", id: "ann" },
    trace: { headers: () => ({}) },
  } as unknown as RequestScope;
}
const adapters = { outbox: { items: (row: OutboxRow) => [{ row }] } } as unknown as Adapters;
function runsOf(once: RunServices["once"]): RunServices {
  const outbox = {
    row: ({ eventId, type }: OutboxRow, text: string) => ({
      shard: "shard#0",
      sort: `0#${eventId}`,
      eventId,
      type,
      text,
    }),
    dispatch: async () => undefined,
  };
  return { once, outbox, sendCommitted: async () => undefined } as unknown as RunServices;
}

interface Mark {
  readonly run: string;
  readonly attempt: number;
}
function markIn(item: TransactionItem): Mark | undefined {
  return (item["Put"] as { readonly mark?: Mark } | undefined)?.mark; // safe: only this test writes it
}
/** What an item says of an effect, if it is one. */
function effectIn(
  item: TransactionItem,
): (Mark & { readonly name: string; readonly kind: string; readonly id: string }) | undefined {
  const row = item["row"] as OutboxRow | undefined; // safe: as `adapters` above makes it
  if (row === undefined) return undefined;
  const [name = ""] = /[\d.]+ \d+ \d+(?=")/.exec(row.text) ?? [];
  const [run = "", attempt] = name.split(" ");
  const kind = row.type === "deed.done" ? "event" : row.type;
  return { run, attempt: Number(attempt), name, kind, id: row.eventId };
}

/** The seed of the one claim: its generation lasts as long as no run is completed and expires. */
function seedOf(world: World): string {
  const [[text, record] = []] = [...world.records];
  return `${text} ${record?.generation}`;
}
