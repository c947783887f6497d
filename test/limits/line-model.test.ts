// The line of an ordered group, in a model of the FIFO queue, the outbox and its sweeps.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  arrival,
  dueFrom,
  joined,
  type Line,
  left,
  type Place,
} from "../../src/parts/limits/line.ts";
import { skewMs } from "../../src/parts/once/claim.ts";
import { runs } from "../support/runs.ts";

interface Message {
  readonly job: number;
  readonly place?: Place | undefined;
}

interface Row {
  readonly dueMs: number;
  readonly message: Message;
}

type Step =
  | "receive" // and a slot is free
  | "receive, no slot"
  | "not acknowledged" // the process ends before
  | "no slot, not acknowledged"
  | "dead-lettered by the queue" // without any code of keelson
  | "a sweep starts"
  | "a sweep sends a page"
  | "enqueue";

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>("receive") },
  { weight: 6, arbitrary: fc.constant<Step>("receive, no slot") },
  { weight: 4, arbitrary: fc.constant<Step>("a sweep starts") },
  { weight: 5, arbitrary: fc.constant<Step>("a sweep sends a page") },
  { weight: 3, arbitrary: fc.constant<Step>("enqueue") },
  { weight: 1, arbitrary: fc.constant<Step>("not acknowledged") },
  { weight: 1, arbitrary: fc.constant<Step>("no slot, not acknowledged") },
  { weight: 1, arbitrary: fc.constant<Step>("dead-lettered by the queue") },
);

/** How far the clock of the step's process is ahead, and the time that passes, in milliseconds. */
const clock = fc.record({
  aheadMs: fc.constantFrom(-skewMs / 2, 0, skewMs / 2),
  ms: fc.constantFrom(0, 1, 250, 750, 2_000, 5_000),
});
type Clock = Parameters<Group["take"]>[1];

/** Time until a row that a process writes can be read, in milliseconds. */
const writeMs = 900;

class Group {
  nowMs = 1_000_000;
  line: Line | undefined;
  queue: Message[] = [];
  outbox: Row[] = [];
  /** Times between which a sweep still has to send the rows. */
  sweep: { readonly afterMs: number; readonly untilMs: number } | undefined;
  readonly done: number[] = [];
  readonly dead = new Set<number>();
  jobs = 0;

  enqueue() {
    this.queue.push({ job: this.jobs++ });
  }

  /** The clock that starts a sweep decides what is due until its end. */
  startSweep(aheadMs: number) {
    this.sweep ??= { afterMs: 0, untilMs: this.nowMs + aheadMs };
  }

  /**
   * Sends the rows up to `beforeEndMs` before the last one that is due, in the order of their times.
   * Other groups have rows at all times, so a page may end anywhere.
   */
  sendPage(beforeEndMs: number) {
    if (this.sweep === undefined) return;
    const { afterMs, untilMs } = this.sweep;
    const endMs = Math.max(afterMs, untilMs - beforeEndMs);
    const page = this.outbox.filter(({ dueMs }) => dueMs > afterMs && dueMs <= endMs);
    this.outbox = this.outbox.filter((row) => !page.includes(row));
    page.sort((one, other) => one.dueMs - other.dueMs);
    this.queue.push(...page.map(({ message }) => message));
    this.sweep = endMs === untilMs ? undefined : { afterMs: endMs, untilMs };
  }

  receive(hasSlot: boolean, acknowledges: boolean, { aheadMs, ms }: Clock) {
    const message = this.queue[0];
    if (message === undefined) return;
    const { job, place } = message;
    const found = arrival(this.line, place);
    if (!found.mayRun || (!hasSlot && !this.done.includes(job))) {
      const fromMs = dueFrom(found.mayRun, this.nowMs - writeMs + aheadMs, ms);
      const next = joined(found.line, place, fromMs);
      this.line = next.line;
      this.outbox.push({ message: { job, place: next.place }, dueMs: next.line.dueMs });
    } else {
      // Its claim runs it once.
      if (!this.done.includes(job)) this.done.push(job);
      if (place !== undefined) this.line = left(found.line, place);
    }
    if (acknowledges) this.queue.shift();
  }

  take(given: Step, clock: { readonly aheadMs: number; readonly ms: number }) {
    const { aheadMs, ms } = clock;
    if (given === "enqueue") this.enqueue();
    else if (given === "a sweep starts") {
      this.nowMs += ms;
      this.startSweep(aheadMs);
    } else if (given === "a sweep sends a page") this.sendPage(ms);
    else if (given === "receive") this.receive(true, true, clock);
    else if (given === "receive, no slot") this.receive(false, true, clock);
    else if (given === "not acknowledged") this.receive(true, false, clock);
    else if (given === "no slot, not acknowledged") this.receive(false, false, clock);
    else {
      const job = this.queue.shift()?.job;
      if (job !== undefined) this.dead.add(job);
    }
  }
}

const inOrder = (jobs: readonly number[]) => jobs.toSorted((one, other) => one - other);

test("no job of a group overtakes one that waits, and none is lost", () => {
  const met = new Set<string>();
  fc.assert(
    fc.property(fc.array(fc.tuple(step, clock), { maxLength: 80 }), (steps) => {
      const group = new Group();
      for (const [given, clock] of steps) {
        group.take(given, clock);
        met.add(given);
      }
      // Slots become free. Jobs that the queue has dead-lettered block no others.
      for (let round = 0; group.queue.length + group.outbox.length > 0; round += 1) {
        expect(round).toBeLessThan(500);
        group.sendPage(0);
        group.nowMs += 10_000;
        group.startSweep(0);
        group.sendPage(0);
        while (group.queue.length > 0) group.receive(true, true, { aheadMs: 0, ms: 1 });
      }
      const all = Array.from({ length: group.jobs }, (_, job) => job);
      expect(inOrder([...new Set([...group.done, ...group.dead])])).toEqual(all);
      expect(group.done).toEqual(inOrder(group.done));
    }),
    { numRuns: runs(200_000) },
  );
  expect(met.size).toBe(8);
});
