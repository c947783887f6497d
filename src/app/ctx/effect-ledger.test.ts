import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type EffectCaller, EffectLedger, type RunPhase } from "./effect-ledger.ts";

const callers: readonly EffectCaller[] = ["handler", "hook"];

/** A ledger in a phase, with the effect `stays` of a `before` hook where one ran. */
function inPhase(phase: RunPhase): EffectLedger<string> {
  const ledger = new EffectLedger<string>(phase === "before");
  const begin = () => ledger.begin("handler");
  const steps: Readonly<Record<RunPhase, readonly (() => unknown)[]>> = {
    before: [],
    open: [],
    waiting: [begin],
    joining: [begin, () => ledger.join()],
    writing: [begin, () => ledger.join(), () => ledger.seal()],
    committed: [begin, () => ledger.seal(), () => ledger.written()],
    unknown: [begin, () => ledger.seal(), () => ledger.uncertain()],
    ended: [() => ledger.end()],
  };
  for (const step of steps[phase]) step();
  expect(ledger.phase).toBe(phase);
  return ledger;
}

const ask = (ledger: EffectLedger<string>, caller: EffectCaller) =>
  ledger.start(caller, "ctx.publish", "publish");

describe("a requested effect", () => {
  test.each<[RunPhase, EffectCaller, string]>([
    ["before", "hook", "stays"],
    ["before", "handler", "stays"],
    ["open", "handler", "joins"],
    ["open", "hook", "joins"],
    ["waiting", "handler", "the run is committing"],
    ["waiting", "hook", "the run is committing"],
    ["joining", "handler", "the run is committing"],
    ["joining", "hook", "joins"],
    ["writing", "handler", "the run is committing"],
    ["writing", "hook", "the run is committing"],
    ["committed", "handler", "the run has committed"],
    ["committed", "hook", "the run has committed"],
    ["unknown", "handler", "the run may have committed"],
    ["unknown", "hook", "the run may have committed"],
    ["ended", "handler", "the run has ended"],
    ["ended", "hook", "the run has ended"],
  ])("while the run is %s, by the %s: %s", (phase, caller, expected) => {
    const ledger = inPhase(phase);
    if (expected === "stays") expect(ask(ledger, caller)).toBe(0);
    else if (expected === "joins") expect(ask(ledger, caller)).toBe(1);
    else {
      const message = `ctx.publish: ${expected}; publish before ctx.commit, and in a hook before \`after\``;
      expect(() => ask(ledger, caller)).toThrow(message);
    }
  });
});

describe("ctx.commit", () => {
  test.each<[RunPhase, string | undefined]>([
    ["before", "the handler has not started"],
    ["open", undefined],
    ["waiting", "a run commits once; put all items into one call"],
    ["joining", "a run commits once; put all items into one call"],
    ["writing", "a run commits once; put all items into one call"],
    ["committed", "a run commits once; put all items into one call"],
    ["unknown", "the run may have committed already; leave it to a retry"],
    ["ended", "the run has ended; await ctx.commit"],
  ])("while the run is %s: %s", (phase, message) => {
    const ledger = inPhase(phase);
    if (message === undefined) ledger.begin("handler");
    else expect(() => ledger.begin("handler")).toThrow(`ctx.commit: ${message}`);
    expect(ledger.phase).toBe(message === undefined ? "waiting" : phase);
    expect(() => inPhase(phase).begin("hook")).toThrow(
      "ctx.commit: a hook commits nothing; return the items from its `commit`",
    );
  });
});

describe("an attempt", () => {
  test("takes the effects that stay and those requested since the last attempt, in this order", () => {
    const ledger = new EffectLedger<string>(true);
    expect(ledger.size).toBe(0);
    ledger.hold(ask(ledger, "hook"), "of before");
    expect(ledger.size).toBeGreaterThan(0);
    ledger.open();
    ledger.hold(ask(ledger, "handler"), "one");
    expect(ledger.size).toBeGreaterThan(0); // one that stays and one that joins
    ledger.begin("handler");
    ledger.join();
    ledger.hold(ask(ledger, "hook"), "of commit");
    expect(ledger.seal()).toEqual(["of before", "one", "of commit"]);
  });

  test("drops what joined it when it fails, and keeps what stays", () => {
    const ledger = new EffectLedger<string>(true);
    ledger.hold(ask(ledger, "hook"), "of before");
    ledger.open();
    ledger.hold(ask(ledger, "handler"), "one");
    ledger.begin("handler");
    ledger.seal();
    expect(ledger.failed()).toEqual(["one"]);
    expect(ledger.phase).toBe("open");
    expect(ledger.size).toBeGreaterThan(0);
    ledger.hold(ask(ledger, "handler"), "two");
    ledger.begin("handler");
    expect(ledger.seal()).toEqual(["of before", "two"]);
  });

  test("does not take an effect that became ready after its own attempt ended", () => {
    const ledger = new EffectLedger<string>(false);
    const late = ask(ledger, "handler");
    ledger.begin("handler");
    ledger.failed();
    ledger.hold(late, "late");
    expect(ledger.size).toBe(0);
    expect(ask(ledger, "handler")).not.toBe(late);
  });

  test("stays written after the run has ended", () => {
    const ledger = inPhase("committed");
    ledger.end();
    expect(ledger.phase).toBe("committed");
    const unknown = inPhase("unknown");
    unknown.end();
    expect(unknown.phase).toBe("ended");
  });
});

describe("an ordinal", () => {
  test("counts requests of one kind and name", () => {
    const ledger = new EffectLedger<string>(false);
    expect([
      ledger.ordinal("event", "a"),
      ledger.ordinal("event", "a"),
      ledger.ordinal("event", "b"),
    ]).toEqual([0, 1, 0]);
    expect([ledger.ordinal("later", "a"), ledger.ordinal("event", "a")]).toEqual([0, 2]);
  });

  test("is given back when an attempt fails, except that of a `before` hook", () => {
    const ledger = new EffectLedger<string>(true);
    ledger.ordinal("event", "a");
    ledger.open();
    const first = [ledger.ordinal("event", "a"), ledger.ordinal("event", "b")];
    for (let attempt = 0; attempt < 2; attempt += 1) {
      ledger.begin("handler");
      ledger.failed();
      expect([ledger.ordinal("event", "a"), ledger.ordinal("event", "b")]).toEqual(first);
    }
    expect(first).toEqual([1, 0]);
  });

  test("of an immediate effect is never given back", () => {
    const ledger = new EffectLedger<string>(false);
    expect(ledger.ordinalAtOnce("job", "a")).toBe(0);
    ledger.begin("handler");
    ledger.failed();
    expect(ledger.ordinalAtOnce("job", "a")).toBe(1);
  });
});

test("writes each effect exactly as often as its attempt and never with another, whatever a handler does", () => {
  type Deed = "ask" | "commit fails" | "commit is written" | "commit is lost";
  const deeds = fc.array(
    fc.constantFrom<Deed>("ask", "ask", "commit fails", "commit is written", "commit is lost"),
    {
      maxLength: 12,
    },
  );
  fc.assert(
    fc.property(fc.boolean(), deeds, (hasHooks, program) => {
      const ledger = new EffectLedger<number>(hasHooks);
      const written: number[] = [];
      const dropped: number[] = [];
      let asked = 0;
      const expected = { written: [] as number[], dropped: [] as number[] };
      let stays: number[] = [];
      let joins: number[] = [];
      if (hasHooks) {
        ledger.hold(ledger.start("hook", "ctx.publish", "publish"), asked);
        stays = [asked++];
        ledger.open();
      }
      for (const deed of program) {
        const isOpen = ledger.phase === "open";
        if (deed === "ask") {
          const effect = asked++;
          if (isOpen) {
            ledger.hold(ledger.start("handler", "ctx.publish", "publish"), effect);
            joins.push(effect);
          } else expect(() => ledger.start("handler", "ctx.publish", "publish")).toThrow();
        } else if (!isOpen) expect(() => ledger.begin("handler")).toThrow();
        else {
          ledger.begin("handler");
          const effects = ledger.seal();
          if (deed === "commit is written") {
            written.push(...effects);
            ledger.written();
            expected.written = [...stays, ...joins];
          } else if (deed === "commit fails") {
            dropped.push(...ledger.failed());
            expected.dropped.push(...joins);
            joins = [];
          } else ledger.uncertain();
        }
      }
      expect({ written, dropped }).toEqual(expected);
      expect(
        callers.every(
          (caller) => ledger.phase === "open" || throws(() => ledger.start(caller, "c", "v")),
        ),
      ).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

function throws(work: () => unknown): boolean {
  try {
    work();
    return false;
  } catch {
    return true;
  }
}
