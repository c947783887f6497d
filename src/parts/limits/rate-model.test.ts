import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { seededRandom } from "../../tools/testing/races/search.ts";
import { RateCounter } from "./rate-counter.ts";
import type { RateStore } from "./rate-store.ts";

const minute = 60_000;
const start = Date.UTC(2026, 10, 28, 12);
const acme = { text: "tenant acme", tenantId: "acme" };

/** Processes that share a store, whose calls end in any order, or never. */
class Fleet {
  readonly #rows = new Map<number, number>();
  readonly #pending: (() => void)[] = [];
  readonly #counters: RateCounter[];
  readonly #clocks: readonly { now(): number }[];
  /** By start of the window. */
  readonly admitted = new Map<number, number>();
  calls = 0;
  offered = 0;
  refused = 0;
  nowMs = start;

  constructor(processes: number, skewMs: (process: number) => number) {
    this.#clocks = Array.from({ length: processes }, (_, process) => ({
      now: () => this.nowMs + skewMs(process),
    }));
    this.#counters = this.#clocks.map((_, process) => this.#counterOf(process));
  }

  #counterOf(process: number): RateCounter {
    const store: Pick<RateStore, "take"> = {
      take: ({ startMs }, count, number) => {
        this.calls += 1;
        const { promise, resolve } = Promise.withResolvers<number | undefined>();
        this.#pending.push(() => {
          const before = this.#rows.get(startMs) ?? 0;
          if (before < number) this.#rows.set(startMs, before + count);
          resolve(before < number ? before : undefined);
        });
        return promise;
      },
    };
    // Safe cast: there is a clock for each process.
    const clock = this.#clocks[process] as { now(): number };
    return new RateCounter({ limit: { id: "x", window: "minute" }, store, clock });
  }

  offer(process: number, number: number): void {
    this.offered += 1;
    const given = this.#counters[process % this.#counters.length]?.take(acme, number, 1);
    void Promise.resolve(given).then((verdict) => {
      if (verdict === undefined) return;
      const startMs = verdict.resetMs - minute;
      if (verdict.isAdmitted) this.admitted.set(startMs, (this.admitted.get(startMs) ?? 0) + 1);
      else this.refused += 1;
    });
  }

  /** The process loses the tokens that it holds, and its requests. */
  crash(process: number): void {
    const at = process % this.#counters.length;
    this.#counters[at] = this.#counterOf(at);
  }

  /** Ends the call that waits at this place, if any. */
  async answer(place: number): Promise<void> {
    this.#pending.splice(place % Math.max(1, this.#pending.length), 1)[0]?.();
    await turns();
  }

  async answerAll(): Promise<void> {
    await turns();
    while (this.#pending.length > 0) await this.answer(0);
  }

  window(): number {
    return Math.floor(this.nowMs / minute) * minute;
  }
}

/** Lets the promises of a process settle. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await undefined;
}

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ offer: fc.nat(49), times: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 8, arbitrary: fc.record({ answer: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ crash: fc.nat(49) }) },
  { weight: 2, arbitrary: fc.record({ passMs: fc.integer({ min: 1, max: 40_000 }) }) },
  { weight: 1, arbitrary: fc.record({ number: fc.integer({ min: 0, max: 60 }) }) },
);

describe("1 to 50 processes", () => {
  test("never admit more than the number in a window, with crashes, a changed number, and clocks 2 s apart", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 60 }),
        fc.array(step, { minLength: 20, maxLength: 150 }),
        async (processes, first, steps) => {
          const fleet = new Fleet(processes, (process) => ((process % 5) - 2) * 500);
          let number = first;
          /** Largest number while any process was in the window. */
          const allowed = new Map<number, number>();
          const note = () => {
            for (const skewMs of [-1_000, 0, 1_000]) {
              const window = Math.floor((fleet.nowMs + skewMs) / minute) * minute;
              allowed.set(window, Math.max(allowed.get(window) ?? 0, number));
            }
          };
          note();
          for (const one of steps) {
            if ("offer" in one)
              for (let time = 0; time < one.times; time += 1) fleet.offer(one.offer + time, number);
            else if ("answer" in one) await fleet.answer(one.answer);
            else if ("crash" in one) fleet.crash(one.crash);
            else if ("passMs" in one) fleet.nowMs += one.passMs;
            else number = one.number;
            note();
          }
          await fleet.answerAll();
          for (const [window, count] of fleet.admitted)
            expect(count).toBeLessThanOrEqual(allowed.get(window) ?? 0);
          expect(fleet.calls).toBeLessThanOrEqual(fleet.offered);
        },
      ),
      { numRuns: runs(200) },
    );
  });

  test("refuse nothing as long as half the number is offered, in any distribution", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 2, max: 120 }),
        fc.infiniteStream(fc.nat(49)),
        fc.infiniteStream(fc.nat(3)),
        async (processes, number, places, answers) => {
          const fleet = new Fleet(processes, () => 0);
          for (let offered = 0; offered < Math.floor(number / 2); offered += 1) {
            fleet.offer(places.next().value ?? 0, number);
            for (let left = answers.next().value ?? 0; left > 1; left -= 1)
              await fleet.answer(left);
          }
          await fleet.answerAll();
          expect([fleet.refused, fleet.admitted.get(fleet.window())]).toEqual([
            0,
            Math.floor(number / 2),
          ]);
        },
      ),
      { numRuns: runs(200) },
    );
  });
});

const random = seededRandom(Number(process.env["KEELSON_TEST_SEED"]));

test.each([
  ["evenly", 100, (request: number) => request % 20],
  ["evenly", 1_000, (request: number) => request % 20],
  ["at random", 100, () => Math.floor(random() * 20)],
  ["at random", 1_000, () => Math.floor(random() * 20)],
  ["mostly to a few", 1_000, () => Math.floor(20 * random() ** 3)],
])(
  "20 processes, offered 20 times the number %s (%i), reach 90 %% with few calls",
  async (_how, number, processOf) => {
    const fleet = new Fleet(20, () => 0);
    for (let request = 0; request < 20 * number; request += 1) {
      fleet.offer(processOf(request), number);
      if (request % 7 === 0) await fleet.answer(request);
    }
    await fleet.answerAll();
    expect(fleet.admitted.get(fleet.window())).toBeGreaterThanOrEqual(0.9 * number);
    expect(fleet.calls).toBeLessThanOrEqual(fleet.offered / 20);
  },
);
