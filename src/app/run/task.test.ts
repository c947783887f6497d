import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import type { Fate } from "../../../test/once/world.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { claimKey, keyText, leaseMs, skewMs } from "../../parts/once/claim.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { consumeOnce, type Task } from "./task.ts";

const seen = z.object({ n: z.number() });

declare module "../../base/types/names.ts" {
  interface Events {
    "tasked.seen": z.output<typeof seen>;
  }
}

const tasked = defineFeature("tasked", (r) => void r.event("tasked.seen", seen));

function start(fate?: (call: string) => Fate | Promise<Fate>): LoneRuntime {
  return loneRuntime(buildServer({ features: [tasked], environment: "test" }), fate);
}

const claimed: Task["claimed"] = [["task", "test"], "t-1", "acme"];
const key = claimKey(...claimed);
const text = keyText(key);
const ids = { origRequestId: "o-1", jobId: "t-1" };

const taskOf = (run: Task["run"], more: Partial<Task> = {}): Task => ({
  claimed,
  handler: "tasked.one.work",
  cause: { causedBy: "c-1", origRequestId: "o-1", tenantId: "acme", userId: "ann" },
  isSystem: false,
  id: "t-1",
  logFields: ids,
  logPrefix: "job",
  kind: "job",
  facts: () => ({ attempt: 2, sinceMs: 5 }),
  deadlineMs: undefined,
  run,
  ...more,
});

const consume = ({ runtime, adapters }: LoneRuntime, run: Task["run"], more?: Partial<Task>) =>
  consumeOnce(runtime, adapters, taskOf(run, more));
const endsOf = ({ ends }: LoneRuntime) => ends.map(({ end }) => end);
const end = { kind: "job", attempt: 2, sinceMs: 5, afterMs: undefined, error: undefined };
const never = () => expect.unreachable();

describe("a task", () => {
  test("whose work succeeds is processed, and skipped from then on", async () => {
    const lone = start();
    let runs = 0;
    const work = () => {
      runs += 1;
    };
    expect(await consume(lone, work)).toEqual({ kind: "processed" });
    expect(await consume(lone, work)).toEqual({ kind: "skipped" });
    expect(runs).toBe(1);
    expect(lone.record(key)).toMatchObject({ status: "COMPLETED" });
    // To an observer, it has been processed either way.
    const processed = { ...end, outcome: "processed" };
    expect(endsOf(lone)).toEqual([processed, processed]);
  });

  test("that has committed is processed, although it fails afterwards", async () => {
    const lone = start();
    const outcome = await consume(lone, async (ctx) => {
      await ctx.commit([], undefined);
      throw new Error("too late");
    });
    expect(outcome).toEqual({ kind: "processed" });
    expect(lone.linesOf("job.failed")).toEqual([]);
  });

  test.each<[string, number, number]>([
    ["has just begun", 0, leaseMs + skewMs],
    ["has a second left", leaseMs - 1_000, 1_000 + skewMs],
    ["ends now", leaseMs + skewMs, 0],
  ])("whose duplicate's lease %s is handed back until its end", async (_, laterMs, afterMs) => {
    const lone = start();
    lone.occupy(key);
    lone.world.nowMs += laterMs;
    expect(await consume(lone, never)).toEqual({ kind: "handed-back", afterMs });
    expect(endsOf(lone)).toEqual([{ ...end, outcome: "handed-back", afterMs }]);
  });

  test("is handed back for no negative time when the lease has ended meanwhile", async () => {
    const { runtime, adapters, world, occupy } = start();
    occupy(key);
    // The store was asked in time, but its answer comes late.
    const times = [world.nowMs];
    const now = () => times.shift() ?? world.nowMs + leaseMs + skewMs + 1;
    const late = { ...runtime, clock: { now } };
    const outcome = await consumeOnce(late, adapters, taskOf(never));
    expect(outcome).toEqual({ kind: "handed-back", afterMs: 0 });
  });

  test("takes its claim as of its start", async () => {
    const { runtime, adapters, world, record } = start();
    const early = { ...runtime, clock: { now: () => world.nowMs - 1 } };
    let leaseUntilMs: number | undefined;
    await consumeOnce(
      early,
      adapters,
      taskOf(() => {
        const held = record(key);
        leaseUntilMs = held?.status === "INPROGRESS" ? held.leaseUntilMs : undefined;
      }),
    );
    expect(leaseUntilMs).toBe(world.nowMs - 1 + leaseMs);
  });

  test("that another run has taken over is handed back at once", async () => {
    const lone = start();
    const outcome = await consume(lone, () => lone.occupy(key));
    expect(outcome).toEqual({ kind: "handed-back", afterMs: 0 });
    expect(lone.record(key)).toMatchObject({ owner: "another" });
  });

  test.each<[string, Error, string]>([
    ["of this program", new Error("broken"), "error"],
    ["of its caller", new ConflictError("taken"), "warn"],
  ])("that fails by an error %s returns it, logs it once and lets go", async (_, error, level) => {
    const lone = start();
    const fails = () => Promise.reject(error);
    expect(await consume(lone, fails)).toEqual({ kind: "failed", error });
    const line = { level, message: error.message, handler: "tasked.one.work", ...ids };
    expect(lone.linesOf("job.failed")).toEqual([expect.objectContaining(line)]);
    expect(endsOf(lone)).toEqual([{ ...end, outcome: "failed", error }]);
    expect(lone.record(key)).toBeUndefined();
    expect(lone.runtime.inFlight.size).toBe(0);
  });

  test("fails when its claim cannot be taken, and does nothing", async () => {
    const lone = start(() => "fails");
    const outcome = await consume(lone, never, { logPrefix: "event", kind: "event" });
    expect(outcome).toMatchObject({ kind: "failed", error: { message: "refused" } });
    expect(lone.linesOf("event.failed")).toHaveLength(1);
  });

  test("ends without an observer", async () => {
    const { runtime, adapters } = start();
    const unobserved = { ...runtime, observer: undefined };
    expect(
      await consumeOnce(
        unobserved,
        adapters,
        taskOf(() => 1),
      ),
    ).toEqual({ kind: "processed" });
  });
});

describe("the run of a task", () => {
  /** Runs a task, and returns what it got. */
  async function given(more: Partial<Task>): Promise<[PipelineContext, RequestScope]> {
    const got: [PipelineContext, RequestScope][] = [];
    await consume(start(), (...parts) => got.push(parts), more);
    return got[0] ?? expect.unreachable();
  }

  test("is of its cause's request and user, who has no roles", async () => {
    const [ctx, scope] = await given({});
    expect(ctx.user).toEqual({ id: "ann", tenantId: "acme", roles: [], kind: "user" });
    expect([Object.isFrozen(ctx.user), Object.isFrozen(ctx.user.roles)]).toEqual([true, true]);
    expect([ctx.requestId, scope.requestId]).toEqual(["o-1", "o-1"]);
    expect([scope.handler, scope.logFields, scope.user]).toEqual([
      "tasked.one.work",
      ids,
      ctx.user,
    ]);
  });

  test.each([true, false])("is the system's as its task says: %s", async (isSystem) => {
    expect((await given({ isSystem }))[1].isSystem).toBe(isSystem);
  });

  test("is part of its sender's trace, or else begins one", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const parent = { traceId, spanId: "00f067aa0ba902b7", sampled: true, state: undefined };
    expect((await given({ parent }))[0].trace.traceId).toBe(traceId);
    expect((await given({}))[0].trace.traceId).not.toBe(traceId);
  });

  test("publishes in the name of its user, caused by itself and not by its cause", async () => {
    const lone = start();
    await consume(lone, (ctx) => ctx.publish("tasked.seen", { n: 1 }));
    const sent = lone.rows.map((row) => JSON.parse(row.text) as unknown);
    const cause = { causedBy: "t-1", origRequestId: "o-1", tenantId: "acme", userId: "ann" };
    expect(sent).toEqual([expect.objectContaining({ type: "tasked.seen", ...cause })]);
  });

  test("records its end in the transaction that completes its claim", async () => {
    const lone = start();
    const item = { Put: { ended: true } };
    const own = () => [item];
    expect(await consume(lone, () => undefined, { own })).toEqual({ kind: "processed" });
    expect(lone.world.transactions).toEqual([[item]]);
    expect(lone.calls).toEqual(["take", "commit"]);
  });
});

describe("the claim of a task", () => {
  test.each<[string, number | undefined, number]>([
    ["a day and an hour", undefined, 25],
    ["a day and an hour, if it comes back for less", 10, 25],
    ["half as long again as it may come back", 40, 60],
  ])("is kept for %s", async (_, redeliveryHours, hours) => {
    const lone = start();
    const hour = 3_600_000;
    const more = redeliveryHours === undefined ? {} : { redeliveryMs: redeliveryHours * hour };
    await consume(lone, () => undefined, more);
    expect(lone.record(key)?.expiresAt).toBe(Math.ceil((lone.world.nowMs + hours * hour) / 1000));
  });

  test.each<[string, number, number]>([
    ["a day", 20, 24],
    ["as long as the message may come back, if that is longer", 40, 40],
  ])("under a key that other work may reuse lasts for %s", async (_, redeliveryHours, hours) => {
    const lone = start();
    const hour = 3_600_000;
    const more = { hasReusableKey: true, redeliveryMs: redeliveryHours * hour };
    const kinds: string[] = [];
    for (const laterMs of [0, hours * hour - 1_000, 2_000]) {
      lone.world.nowMs += laterMs;
      kinds.push((await consume(lone, () => undefined, more)).kind);
    }
    expect(kinds).toEqual(["processed", "skipped", "processed"]);
  });

  test("is leased for no longer than the process lives", async () => {
    const lone = start();
    const deadlineMs = lone.world.nowMs + 4_000;
    const leases: unknown[] = [];
    const note = () => leases.push(lone.record(key));
    await consume(lone, note, { deadlineMs });
    expect(leases).toEqual([expect.objectContaining({ leaseUntilMs: deadlineMs })]);
  });

  test.each([true, false])(
    "tells later work apart if its key may be reused: %s",
    async (reusable) => {
      const lone = start();
      await consume(lone, () => undefined, { hasReusableKey: reusable });
      expect(lone.record(key)?.generation !== undefined).toBe(reusable);
    },
  );
});

describe("duplicates in one process", () => {
  test("run one after another, each once the one before has failed", async () => {
    const lone = start();
    const gates = [1, 2, 3].map(() => Promise.withResolvers<void>());
    let [running, most, begun] = [0, 0, 0];
    const work = async () => {
      most = Math.max(most, ++running);
      const gate = gates[begun++];
      await gate?.promise;
      running -= 1;
      throw new Error("not yet");
    };
    const all = gates.map(() => consume(lone, work));
    for (const gate of gates) gate.resolve();
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual([
      "failed",
      "failed",
      "failed",
    ]);
    expect([begun, most]).toEqual([3, 1]);
  });

  test("wait for the first, and then find its work done instead of its lease", async () => {
    const lone = start();
    const gate = Promise.withResolvers<void>();
    const first = consume(lone, () => gate.promise);
    const second = consume(lone, never);
    expect([...lone.runtime.inFlight]).toEqual([
      [text, { work: expect.any(Promise), handler: "tasked.one.work", ids }],
    ]);
    gate.resolve();
    expect([await first, await second]).toEqual([{ kind: "processed" }, { kind: "skipped" }]);
    expect(lone.runtime.inFlight.size).toBe(0);
  });

  test("do not fail because other work under their claim has failed", async () => {
    const lone = start();
    const { inFlight } = lone.runtime;
    const work = Promise.reject(new Error("other work"));
    inFlight.set(text, { work, handler: "other", ids: {} });
    const waiting = consume(lone, () => undefined);
    await work.catch(() => undefined);
    inFlight.delete(text);
    expect(await waiting).toEqual({ kind: "processed" });
  });

  test("of other claims do not wait", async () => {
    const lone = start();
    const gate = Promise.withResolvers<void>();
    const first = consume(lone, () => gate.promise);
    const other = { claimed: [["task", "test"], "t-2", "acme"] } satisfies Partial<Task>;
    expect(await consume(lone, () => undefined, other)).toEqual({ kind: "processed" });
    gate.resolve();
    expect(await first).toEqual({ kind: "processed" });
  });
});
