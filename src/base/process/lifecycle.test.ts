import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createProcessState,
  deadlinesFrom,
  type Lifecycle,
  type LifecycleAction,
  type LifecycleEvent,
  nextDue,
  type ShutdownPhase,
  startingLifecycle,
  step,
} from "./lifecycle.ts";
import { defaultTimes, mergedTimes, type ShutdownTimes } from "./shutdown-limits.ts";

/** Plays events at their times, and gives what was done when. */
function played(
  times: ShutdownTimes,
  events: readonly (readonly [atMs: number, event: LifecycleEvent])[],
) {
  let lifecycle = startingLifecycle(times, 0);
  const done: [number, LifecycleAction][] = [];
  for (const [atMs, event] of events) {
    // What is due in between is told as it comes.
    for (let due = nextDue(lifecycle); due !== undefined && due < atMs; due = nextDue(lifecycle)) {
      const stepped = step(lifecycle, { type: "time" }, due);
      lifecycle = stepped.lifecycle;
      for (const action of stepped.actions) done.push([due, action]);
    }
    const stepped = step(lifecycle, event, atMs);
    lifecycle = stepped.lifecycle;
    for (const action of stepped.actions) done.push([atMs, action]);
  }
  return { lifecycle, done };
}

const finished = (phase: ShutdownPhase): LifecycleEvent => ({ type: "done", phase });
const never: LifecycleEvent = { type: "time" };

describe("the life of a process", () => {
  test("ends with 0 if all phases end in time, one after the other", () => {
    const { lifecycle, done } = played(defaultTimes, [
      [10, { type: "started" }],
      [1_000, { type: "terminate" }],
      [9_000, finished("in-flight-drain")],
      [9_500, finished("workers-stopped")],
      [9_600, finished("resources-closed")],
      [9_601, finished("flushed")],
    ]);
    expect(done).toEqual([
      [1_000, "drain"],
      [4_000, "close-listener"],
      [9_000, "finish-workers"],
      [9_500, "close-resources"],
      [9_600, "flush"],
      [9_601, "exit"],
    ]);
    expect(lifecycle).toMatchObject({ exitCode: 0, cutOff: [], hasEnded: true, state: "flushed" });
    expect(lifecycle.entered).toEqual({
      starting: 0,
      running: 10,
      draining: 1_000,
      "in-flight-drain": 4_000,
      "workers-stopped": 9_000,
      "resources-closed": 9_500,
      flushed: 9_600,
    });
  });

  test("ends at the total if everything hangs, with each phase cut off in turn", () => {
    const { lifecycle, done } = played(defaultTimes, [
      [0, { type: "started" }],
      [0, { type: "terminate" }],
      [60_000, never],
    ]);
    expect(done).toEqual([
      [0, "drain"],
      [3_000, "close-listener"],
      [32_000, "abort-requests"],
      [33_000, "cut-requests"],
      [33_000, "finish-workers"],
      [35_800, "cut-workers"],
      [35_800, "close-resources"],
      [39_300, "cut-resources"],
      [39_300, "flush"],
      [40_000, "exit"],
    ]);
    expect(lifecycle).toMatchObject({
      exitCode: 1,
      cutOff: ["in-flight-drain", "workers-stopped", "resources-closed", "flushed"],
    });
  });

  test("waits only for its resources, for a moment, after a second signal", () => {
    const { done } = played(defaultTimes, [
      [0, { type: "started" }],
      [0, { type: "terminate" }],
      [500, { type: "terminate" }],
      [60_000, never],
    ]);
    expect(done).toEqual([
      [0, "drain"],
      [500, "close-listener"],
      [500, "abort-requests"],
      [500, "cut-requests"],
      [500, "finish-workers"],
      [500, "cut-workers"],
      [500, "close-resources"],
      [1_400, "cut-resources"],
      [1_400, "flush"],
      [1_500, "exit"],
    ]);
  });

  test("ends immediately with 1 after a third signal", () => {
    const { lifecycle, done } = played(defaultTimes, [
      [0, { type: "started" }],
      [0, { type: "terminate" }],
      [10, { type: "terminate" }],
      [20, { type: "terminate" }],
      [30, finished("resources-closed")],
      [40, { type: "terminate" }],
    ]);
    expect(done.at(-1)).toEqual([20, "exit"]);
    expect(lifecycle).toMatchObject({ exitCode: 1, hasEnded: true, signals: 3 });
  });

  test("does not linger and does not finish starting if it is told to stop while it starts", () => {
    const { lifecycle, done } = played(defaultTimes, [
      [0, { type: "terminate" }],
      [1, { type: "started" }],
      [2, finished("in-flight-drain")],
    ]);
    expect(done).toEqual([
      [0, "drain"],
      [0, "close-listener"],
      [2, "finish-workers"],
    ]);
    expect(lifecycle.state).toBe("workers-stopped");
  });

  test("drains and ends with 1 after an uncaught error; a second one changes nothing", () => {
    const { lifecycle, done } = played(defaultTimes, [
      [0, { type: "started" }],
      [0, { type: "fault" }],
      [1, { type: "fault" }],
      [4_000, finished("in-flight-drain")],
      [4_000, finished("workers-stopped")],
      [4_000, { type: "done", phase: "resources-closed", clean: true }],
      [4_000, finished("flushed")],
    ]);
    expect(done).toEqual([
      [0, "drain"],
      [3_000, "close-listener"], // balancers have to take notice of this, too
      [4_000, "finish-workers"],
      [4_000, "close-resources"],
      [4_000, "flush"],
      [4_000, "exit"],
    ]);
    expect(lifecycle).toMatchObject({ exitCode: 1, cutOff: [] });
  });

  test("ends with 1 if a resource does not close, without stopping for it", () => {
    const { lifecycle } = played(defaultTimes, [
      [0, { type: "started" }],
      [0, { type: "terminate", skipsLinger: true }],
      [1, finished("in-flight-drain")],
      [1, finished("workers-stopped")],
      [1, { type: "done", phase: "resources-closed", clean: false }],
      [1, finished("flushed")],
    ]);
    expect(lifecycle).toMatchObject({ exitCode: 1, hasEnded: true, cutOff: [] });
  });
});

test("a process that may leave resources open ends with 0 without them, but not without requests", () => {
  const times = { lingerMs: 0, drainMs: 600, totalMs: 900 };
  const ended = (phases: readonly ShutdownPhase[], event?: LifecycleEvent) => {
    let { lifecycle } = step(startingLifecycle(times, 0, true), { type: "started" }, 0);
    const happens = (event: LifecycleEvent, nowMs: number) => {
      lifecycle = step(lifecycle, event, nowMs).lifecycle;
    };
    happens({ type: "terminate" }, 0);
    for (const phase of phases) happens({ type: "done", phase }, 100);
    if (event !== undefined) happens(event, 200);
    happens({ type: "time" }, 800);
    happens({ type: "done", phase: "flushed" }, 850);
    return lifecycle;
  };
  const closing = ["in-flight-drain", "workers-stopped"] as const;
  expect(ended(closing)).toMatchObject({
    exitCode: 0,
    cutOff: ["resources-closed"],
    hasEnded: true,
  });
  expect(ended(closing, { type: "done", phase: "resources-closed", clean: false })).toMatchObject({
    exitCode: 0,
    cutOff: [],
    hasEnded: true,
  });
  expect(ended([])).toMatchObject({ exitCode: 1, hasEnded: true });
  expect(ended([], { type: "done", phase: "in-flight-drain", clean: false })).toMatchObject({
    exitCode: 1,
  });
});

test.each([
  [{}, false, { lingerMs: 3_000, drainMs: 30_000, totalMs: 40_000 }],
  [{ drainMs: 5 }, undefined, { lingerMs: 3_000, drainMs: 5, totalMs: 40_000 }],
  [{ totalMs: 1_000 }, undefined, { lingerMs: 0, drainMs: 600, totalMs: 1_000 }],
  [{ totalMs: 1_001 }, undefined, { lingerMs: 3_000, drainMs: 30_000, totalMs: 1_001 }],
  [{ lingerMs: undefined, drainMs: 5 }, false, { lingerMs: 3_000, drainMs: 5, totalMs: 40_000 }],
  [{ totalMs: undefined }, true, { lingerMs: 0, drainMs: 600, totalMs: 900 }],
  [{ totalMs: 40_000 }, true, { lingerMs: 0, drainMs: 600, totalMs: 40_000 }],
])("the times %j, on a Web Function: %s, become %j", (given, isWebFunction, times) => {
  // Safe cast: the types do not allow `undefined`, but plain JavaScript passes it.
  expect(mergedTimes(given as Partial<ShutdownTimes>, isWebFunction)).toEqual(times);
});

test("of a rest below a second, the flush has half", () => {
  expect(deadlinesFrom(0, mergedTimes({}, true))).toMatchObject({
    drainMs: 600,
    workersMs: 660,
    resourcesMs: 750,
    totalMs: 900,
  });
});

test("the later phases share what the drain leaves of the total, in order", () => {
  fc.assert(
    fc.property(
      fc.nat(1e6),
      fc.nat(60_000),
      fc.nat(60_000),
      fc.nat(120_000),
      (startMs, lingerMs, drainMs, restMs) => {
        const totalMs = lingerMs + drainMs + restMs;
        const found = deadlinesFrom(startMs, { lingerMs, drainMs, totalMs });
        const order = [
          startMs,
          found.lingerMs,
          found.abortMs,
          found.drainMs,
          found.workersMs,
          found.resourcesMs,
          found.totalMs,
        ];
        expect(order).toEqual(order.toSorted((one, other) => one - other));
        expect([found.lingerMs, found.drainMs, found.totalMs]).toEqual([
          startMs + lingerMs,
          startMs + lingerMs + drainMs,
          startMs + totalMs,
        ]);
      },
    ),
  );
  expect(deadlinesFrom(0, { lingerMs: 3_000, drainMs: 30_000, totalMs: 20_000 }).drainMs).toBe(
    20_000,
  );
});

test("requests in flight are warned a second before they are cut off, or a tenth of the drain if that is less", () => {
  const abortMs = (drainMs: number) =>
    deadlinesFrom(0, { lingerMs: 0, drainMs, totalMs: 60_000 }).abortMs;
  expect([abortMs(30_000), abortMs(10_000), abortMs(5_000), abortMs(0)]).toEqual([
    29_000, 9_000, 4_500, 0,
  ]);
});

const phases: readonly ShutdownPhase[] = [
  "draining",
  "in-flight-drain",
  "workers-stopped",
  "resources-closed",
  "flushed",
];
const anyEvent: fc.Arbitrary<LifecycleEvent> = fc.oneof(
  fc.constant<LifecycleEvent>({ type: "started" }),
  fc.boolean().map((skipsLinger): LifecycleEvent => ({ type: "terminate", skipsLinger })),
  fc.constant<LifecycleEvent>({ type: "fault" }),
  fc.constant<LifecycleEvent>({ type: "time" }),
  fc
    .tuple(fc.constantFrom(...phases), fc.boolean())
    .map(([phase, clean]): LifecycleEvent => ({ type: "done", phase, clean })),
);

test("in any order of events, states only advance, each action comes once and in order, and the process ends in time", () => {
  const order: readonly LifecycleAction[] = [
    "drain",
    "close-listener",
    "abort-requests",
    "cut-requests",
    "finish-workers",
    "cut-workers",
    "close-resources",
    "cut-resources",
    "flush",
    "exit",
  ];
  const states = ["starting", "running", ...phases];
  fc.assert(
    fc.property(
      fc.record({ lingerMs: fc.nat(5_000), drainMs: fc.nat(30_000), restMs: fc.nat(10_000) }),
      fc.array(fc.tuple(fc.nat(4_000), anyEvent), { maxLength: 40 }),
      ({ lingerMs, drainMs, restMs }, happening) => {
        const times = { lingerMs, drainMs, totalMs: lingerMs + drainMs + restMs };
        let lifecycle: Lifecycle = startingLifecycle(times, 0);
        const done: LifecycleAction[] = [];
        let [nowMs, beganMs] = [0, Number.POSITIVE_INFINITY];
        const tell = (event: LifecycleEvent) => {
          const before = lifecycle;
          const { lifecycle: after, actions } = step(before, event, nowMs);
          expect(states.indexOf(after.state)).toBeGreaterThanOrEqual(states.indexOf(before.state));
          expect(after.exitCode).toBeGreaterThanOrEqual(before.exitCode);
          if (before.hasEnded) expect(actions).toEqual([]);
          done.push(...actions);
          if (actions.includes("drain")) beganMs = nowMs;
          lifecycle = after;
        };
        for (const [afterMs, event] of happening) {
          nowMs += afterMs;
          tell(event);
          expect(nextDue(lifecycle) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(nowMs);
        }
        // From here on nothing but time passes.
        for (let due = nextDue(lifecycle); due !== undefined; due = nextDue(lifecycle)) {
          nowMs = due;
          tell({ type: "time" });
        }
        expect(new Set(done).size).toBe(done.length);
        expect(done).toEqual(
          done.toSorted((one, other) => order.indexOf(one) - order.indexOf(other)),
        );
        const isTold = beganMs !== Number.POSITIVE_INFINITY;
        expect([lifecycle.hasEnded, done.at(-1)]).toEqual(
          isTold ? [true, "exit"] : [false, undefined],
        );
        if (lifecycle.cutOff.length > 0) expect(lifecycle.exitCode).toBe(1);
        if (isTold && happening.every(([afterMs]) => afterMs === 0))
          expect(nowMs - beganMs).toBeLessThanOrEqual(times.totalMs);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a serving process is draining from its drain on, until its host names another state", () => {
  const process = createProcessState();
  expect([process.state, process.draining.aborted]).toEqual(["running", false]);

  process.enter("starting");
  expect(process.state).toBe("starting");

  process.enter("running");
  process.drain();
  expect([process.state, process.draining.aborted]).toEqual(["draining", true]);

  process.enter("flushed");
  expect(process.state).toBe("flushed");
});
