// The line of an ordered group, in a model of the FIFO queue and the outbox.
import fc from "fast-check";
import { expect, test } from "vitest";
import { arrival, joined, type Line, left, type Place } from "../../src/parts/limits/line.ts";
import { runs } from "../support/runs.ts";

interface Message {
  readonly job: number;
  readonly place?: Place | undefined;
  readonly dueMs: number;
}

type Step =
  | "receive" // and a slot is free
  | "receive, no slot"
  | "not acknowledged" // the process ends before
  | "no slot, not acknowledged"
  | "dead-lettered by the queue" // without any code of keelson
  | "sweep"
  | "enqueue";

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>("receive") },
  { weight: 4, arbitrary: fc.constant<Step>("receive, no slot") },
  { weight: 4, arbitrary: fc.constant<Step>("sweep") },
  { weight: 3, arbitrary: fc.constant<Step>("enqueue") },
  { weight: 1, arbitrary: fc.constant<Step>("not acknowledged") },
  { weight: 1, arbitrary: fc.constant<Step>("no slot, not acknowledged") },
  { weight: 1, arbitrary: fc.constant<Step>("dead-lettered by the queue") },
);

class Group {
  nowMs = 1_000;
  line: Line | undefined;
  queue: Message[] = [];
  outbox: Message[] = [];
  readonly done: number[] = [];
  readonly dead = new Set<number>();
  jobs = 0;

  enqueue() {
    this.queue.push({ job: this.jobs++, dueMs: 0 });
  }

  /** Sends what is due, in the order of the times. */
  sweep(afterMs: number) {
    this.nowMs += afterMs;
    const due = this.outbox.filter(({ dueMs }) => dueMs <= this.nowMs);
    this.outbox = this.outbox.filter(({ dueMs }) => dueMs > this.nowMs);
    this.queue.push(...due.toSorted((one, other) => one.dueMs - other.dueMs));
  }

  receive(hasSlot: boolean, acknowledges: boolean, ms: number) {
    const message = this.queue[0];
    if (message === undefined) return;
    const { job, place } = message;
    const found = arrival(this.line, place);
    if (!found.mayRun || (!hasSlot && !this.done.includes(job))) {
      const next = joined(found.line, place, this.nowMs + (found.mayRun ? ms : 1));
      this.line = next.line;
      this.outbox.push({ job, place: next.place, dueMs: next.line.dueMs });
    } else {
      // Its claim runs it once.
      if (!this.done.includes(job)) this.done.push(job);
      if (place !== undefined) this.line = left(found.line, place);
    }
    if (acknowledges) this.queue.shift();
  }

  take(given: Step, ms: number) {
    if (given === "enqueue") this.enqueue();
    else if (given === "sweep") this.sweep(ms);
    else if (given === "receive") this.receive(true, true, ms);
    else if (given === "receive, no slot") this.receive(false, true, ms);
    else if (given === "not acknowledged") this.receive(true, false, ms);
    else if (given === "no slot, not acknowledged") this.receive(false, false, ms);
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
    fc.property(fc.array(fc.tuple(step, fc.nat(9)), { maxLength: 80 }), (steps) => {
      const group = new Group();
      for (const [given, ms] of steps) {
        group.take(given, ms);
        met.add(given);
      }
      // Slots become free. Jobs that the queue has dead-lettered block no others.
      for (let round = 0; group.queue.length + group.outbox.length > 0; round += 1) {
        expect(round).toBeLessThan(500);
        group.sweep(10);
        while (group.queue.length > 0) group.receive(true, true, 1);
      }
      const all = Array.from({ length: group.jobs }, (_, job) => job);
      expect(inOrder([...new Set([...group.done, ...group.dead])])).toEqual(all);
      expect(group.done).toEqual(inOrder(group.done));
    }),
    { numRuns: runs(60_000) },
  );
  expect(met.size).toBe(7);
});
