import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type LoneRuntime, loneRuntime } from "../../../test/fixtures/lone-runtime.ts";
import { PermanentError } from "../../base/errors/errors.ts";
import { lazy } from "../../base/process/lazy.ts";
import type { MessageQueue, QueueMessage } from "../../parts/messages/message-queue.ts";
import { leaseMs, skewMs } from "../../parts/once/claim.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";
import { messageClaim, processMessage } from "./process-message.ts";

const input = z.object({ n: z.number() });

declare module "../../base/types/names.ts" {
  interface Events {
    "processed.ended": z.output<typeof input>;
  }
  interface Jobs {
    "processed.one.work": z.input<typeof input>;
  }
}

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const eventKey = messageClaim("event", "processed.processed.hear", "e-1", "acme");
const jobKey = messageClaim("job", "processed.one.work", "j-1", undefined);
const sent = { causedBy: "c-1", origRequestId: "o-1" };
const event = {
  ...sent,
  kind: "shared",
  type: "processed.ended",
  eventId: "e-1",
  tenantId: "acme",
  payload: { n: 7 },
};
const job = { ...sent, jobId: "j-1", name: "processed.one.work", payload: { n: 8 } };
const delivery = {
  ...sent,
  jobId: "d-1",
  name: "keelson.delivery.send",
  tenantId: "acme",
  payload: { channel: "processed-wall", key: "k", message: { n: 1 } },
};

type Does = (ctx: PipelineContext, n: number) => unknown;

/** A server whose consumer, job and channel do what the test says. */
function start(does: Does = () => undefined): LoneRuntime {
  const processed = defineFeature("processed", (r) => {
    r.event("processed.ended", input);
    r.on("processed.ended", {
      name: "hear",
      handler: (ctx, { payload }) => void does(ctx, payload.n),
    });
    r.job("one.work", { input, handler: (ctx, { n }) => void does(ctx, n) });
    r.channel("processed-wall", { input, send: (ctx, { n }) => void does(ctx, n) });
  });
  return loneRuntime(buildServer({ features: [processed], environment: "test" }));
}

/** A queue that notes what is asked of it. */
function queueOf(more: Partial<MessageQueue> = {}) {
  const asked: unknown[][] = [];
  const unused = () => Promise.reject(new Error("a message is processed without this"));
  const queue: MessageQueue = {
    name: "work",
    isOrdered: false,
    holds: undefined,
    url: unused,
    send: unused,
    sendLater: unused,
    isFinal: () => false,
    receive: unused,
    remove: unused,
    size: unused,
    changeVisibility: async (...given) => void asked.push(["changeVisibility", ...given]),
    maxReceives: async () => 5,
    redeliveryMs: lazy(async () => 0),
    deadLetter: async ({ id }) => {
      asked.push(["deadLetter", id]);
      return true;
    },
    ...more,
  };
  return { queue, asked };
}

const messageOf = (body: unknown, more: Partial<QueueMessage> = {}): QueueMessage => ({
  id: "m-1",
  body: typeof body === "string" ? body : JSON.stringify(body),
  receipt: "receipt-1",
  group: undefined,
  receives: 1,
  sentMs: undefined,
  ...more,
});

const fails =
  (error: unknown): Does =>
  () => {
    throw error;
  };

/** Processes one message, and returns its outcome with all that was seen. */
async function outcomeOf(
  does: Does,
  body: unknown,
  more: Partial<QueueMessage> = {},
  { queue, asked } = queueOf(),
) {
  const lone = start(does);
  const outcome = await processMessage(lone.runtime, lone.adapters, queue, messageOf(body, more));
  return { ...lone, outcome, asked };
}

describe("a message whose work succeeds", () => {
  test.each([
    ["an event", event, 7],
    ["a job", job, 8],
    ["a delivery", delivery, 1],
  ])("is done, and its queue is left alone: %s", async (_, body, expected) => {
    const seen: number[] = [];
    const { outcome, asked } = await outcomeOf((_ctx, n) => seen.push(n), body);
    expect(outcome).toEqual({ kind: "done" });
    expect([seen, asked]).toEqual([[expected], []]);
  });

  test("is done when it arrives again, without the work being done again", async () => {
    let runs = 0;
    const { runtime, adapters } = start(() => {
      runs += 1;
    });
    const { queue, asked } = queueOf();
    const outcomes = [
      await processMessage(runtime, adapters, queue, messageOf(job)),
      await processMessage(runtime, adapters, queue, messageOf(job, { receives: 2 })),
    ];
    expect([outcomes, runs, asked]).toEqual([[{ kind: "done" }, { kind: "done" }], 1, []]);
  });

  test.each([
    ["an event", event, eventKey],
    ["a job", job, jobKey],
  ])("is counted, aged and traced from its queue: %s", async (_, body, key) => {
    const seen: unknown[] = [];
    const { runtime, adapters, world, ends, record } = start((ctx) => {
      seen.push(ctx.trace.traceId, record(key));
    });
    const { queue } = queueOf({ redeliveryMs: lazy(async () => 40 * 3_600_000) });
    const trace = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const message = messageOf({ ...body, trace }, { receives: 3, sentMs: 123 });
    const deadlineMs = world.nowMs + 4_000;
    await processMessage(runtime, adapters, queue, message, { deadlineMs });
    expect(seen).toEqual([traceId, expect.objectContaining({ leaseUntilMs: deadlineMs })]);
    expect(ends).toEqual([
      { handler: expect.any(String), end: expect.objectContaining({ attempt: 3, sinceMs: 123 }) },
    ]);
    // The claim outlasts every redelivery.
    expect(record(key)?.expiresAt).toBe(Math.ceil((world.nowMs + 60 * 3_600_000) / 1000));
  });
});

describe("a message whose duplicate is running", () => {
  /** Processes a message whose claim another process has. */
  async function duplicate(
    more: Partial<QueueMessage>,
    of: Partial<MessageQueue> = {},
    { body = {}, sinceMs = 0 } = {},
  ) {
    const { runtime, adapters, occupy, linesOf, world } = start(() => expect.unreachable());
    occupy(eventKey);
    world.nowMs += sinceMs;
    const { queue, asked } = queueOf({
      sendLater: async (...given) => void asked.push(["sendLater", ...given]),
      ...of,
    });
    const message = messageOf({ ...event, ...body }, more);
    const outcome = await processMessage(runtime, adapters, queue, message);
    expect(linesOf("queue.retry")).toEqual([]);
    return { outcome, asked };
  }
  const afterMs = leaseMs + skewMs;
  const comesBack = (inMs = afterMs) => ({
    outcome: { kind: "later", afterMs: inMs },
    asked: [["changeVisibility", "receipt-1", inMs]],
  });

  test("comes back when that run's lease has ended", async () => {
    expect(await duplicate({ receives: 4 })).toEqual(comesBack());
  });

  // SQS counts these receives and would move the message away, although nothing has failed.
  test.each([5, 6])(
    "is sent again at receive %i of at most 5, without further attempts",
    async (receives) => {
      const waited = { times: 0, attempts: 2, failed: ["processed.other"], reason: "no ink" };
      const { outcome, asked } = await duplicate(
        { receives, group: "acme" },
        {},
        { body: { waited } },
      );
      expect(outcome).toEqual({ kind: "done" });
      expect(asked).toEqual([["sendLater", expect.any(String), "acme", afterMs]]);
      const { waited: sentAgain, ...content } = JSON.parse(String(asked[0]?.[1]));
      expect([content, sentAgain]).toEqual([event, { ...waited, times: 1 }]);
    },
  );

  test("comes back at each receive if that run may have crashed, and so may the next", async () => {
    const late = { sinceMs: leaseMs / 2 + skewMs + 1 };
    expect(await duplicate({ receives: 5 }, {}, late)).toEqual(comesBack(afterMs - late.sinceMs));
  });

  test.each<[string, Partial<MessageQueue>]>([
    ["keeps the order", { isOrdered: true }],
    ["has no dead-letter queue", { maxReceives: async () => undefined }],
    ["does not tell its limit", { maxReceives: () => Promise.reject(new Error("no access")) }],
  ])("comes back at each receive if its queue %s", async (_, of) => {
    expect(await duplicate({ receives: 50 }, of)).toEqual(comesBack());
  });
});

describe("a message that fails", () => {
  const facts = {
    queue: "work",
    messageId: "m-1",
    origRequestId: "o-1",
    causedBy: "c-1",
    reason: "not yet",
  };

  test.each([
    [1, 1_000],
    [2, 5_000],
    [3, 20_000],
    [4, 60_000],
    [5, 120_000],
    [6, 120_000],
    [50, 120_000],
  ])("after %i receives comes back in %i ms", async (receives, afterMs) => {
    const queue = queueOf({ maxReceives: async () => undefined });
    const failing = await outcomeOf(fails(new Error("not yet")), event, { receives }, queue);
    expect(failing.outcome).toEqual({ kind: "later", afterMs, reason: "not yet" });
    expect(failing.asked).toEqual([["changeVisibility", "receipt-1", afterMs]]);
    const ids = { event: "processed.ended", eventId: "e-1", tenantId: "acme" };
    expect(failing.linesOf("queue.retry")).toEqual([
      expect.objectContaining({ ...facts, ...ids, level: "warn", receives, afterMs }),
    ]);
  });

  test.each([
    [4, "later"],
    [5, "dead-lettered"],
    [6, "dead-lettered"],
  ])("at receive %i of at most 5 is %s", async (receives, kind) => {
    const { outcome } = await outcomeOf(fails(new Error("not yet")), job, { receives });
    expect(outcome).toMatchObject({ kind, reason: "not yet" });
  });

  test.each([
    ["event", { ...event, trace: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } }],
    ["job", job],
    ["delivery", delivery],
  ])("for good moves away at once, with one line and one count: %s", async (kind, body) => {
    const failing = await outcomeOf(fails(new PermanentError("not yet")), body);
    expect(failing.outcome).toEqual({ kind: "dead-lettered", reason: "not yet" });
    expect(failing.asked).toEqual([["deadLetter", "m-1"]]);
    const [line, ...others] = failing.linesOf("queue.dead_lettered");
    const ids =
      "jobId" in body
        ? { job: body.name, jobId: body.jobId }
        : { event: "processed.ended", eventId: "e-1", trace_id: traceId };
    expect(line).toMatchObject({ ...facts, ...ids, level: "error", receives: 1 });
    expect(line?.["tenantId"]).toBe("tenantId" in body ? "acme" : "");
    expect("trace_id" in (line ?? {})).toBe("trace" in body);
    expect([others, failing.linesOf("queue.retry")]).toEqual([[], []]);
    expect(failing.measured.filter(([name]) => name === "keelson.dead_letters")).toEqual([
      ["keelson.dead_letters", 1, { "keelson.kind": kind }],
    ]);
  });

  test("for good comes back if its queue has nowhere to move it", async () => {
    const queue = queueOf({ deadLetter: async () => false });
    const never = fails(new PermanentError("never"));
    const failing = await outcomeOf(never, job, { receives: 2 }, queue);
    expect(failing.outcome).toEqual({ kind: "later", afterMs: 5_000, reason: "never" });
    expect(failing.linesOf("queue.dead_lettered")).toEqual([]);
    expect(failing.measured.filter(([name]) => name === "keelson.dead_letters")).toEqual([]);
  });

  test.each<[string, Partial<MessageQueue>]>([
    ["is not told its limit", { maxReceives: () => Promise.reject(new Error("no access")) }],
    ["cannot be moved", { deadLetter: () => Promise.reject(new Error("no access")) }],
  ])("and %s comes back, and both failures are logged", async (_, more) => {
    const queue = queueOf(more);
    const failing = await outcomeOf(fails(new Error("not yet")), event, { receives: 5 }, queue);
    expect(failing.outcome).toEqual({ kind: "later", afterMs: 120_000, reason: "not yet" });
    expect(failing.asked).toEqual([["changeVisibility", "receipt-1", 120_000]]);
    expect(failing.linesOf("queue.dead_letter_failed")).toEqual([
      expect.objectContaining({ ...facts, level: "error", failure: "Error: no access" }),
    ]);
  });

  test("and cannot be handed back is left to its visibility timeout, with a line", async () => {
    const queue = queueOf({ changeVisibility: () => Promise.reject(new Error("expired")) });
    const failing = await outcomeOf(fails(new Error("not yet")), event, {}, queue);
    expect(failing.outcome).toEqual({ kind: "later", afterMs: 1_000, reason: "not yet" });
    expect(failing.linesOf("queue.hand_back_failed")).toEqual([
      expect.objectContaining({ level: "warn", messageId: "m-1", reason: "Error: expired" }),
    ]);
  });
});

describe("a message that no handler gets", () => {
  const unreachable: Does = () => expect.unreachable();

  test("because it cannot be read moves away at once, without IDs and of no kind", async () => {
    const { outcome, measured, linesOf } = await outcomeOf(unreachable, "{");
    const reason = "the message is not JSON";
    expect(outcome).toEqual({ kind: "dead-lettered", reason });
    const [line] = linesOf("queue.dead_lettered");
    expect(line).toMatchObject({ queue: "work", messageId: "m-1", receives: 1, reason });
    expect(Object.keys(line ?? {})).not.toContain("tenantId");
    expect(measured).toEqual([["keelson.dead_letters", 1, { "keelson.kind": undefined }]]);
  });

  test.each([
    ["a job among events", job, "events", "a job is not taken from the queue of events"],
    ["an event among jobs", event, "jobs", "an event is not taken from the queue of jobs"],
  ] as const)("because its queue holds others moves away at once: %s", async (...given) => {
    const [, body, holds, reason] = given;
    const { outcome, calls } = await outcomeOf(unreachable, body, {}, queueOf({ holds }));
    expect(outcome).toEqual({ kind: "dead-lettered", reason });
    expect(calls).toEqual([]);
  });

  test.each([
    ["event processed.unknown", { ...event, type: "processed.unknown" }],
    ["job processed.one.unknown", { ...job, name: "processed.one.unknown" }],
  ])("because the %s is unknown comes back, as the next version may know it", async (...given) => {
    const [unknown, body] = given;
    const { outcome } = await outcomeOf(unreachable, body);
    const reason = `the ${unknown} is declared by no feature of this server`;
    expect(outcome).toEqual({ kind: "later", afterMs: 1_000, reason });
  });
});

describe("a job that has waited in its group's line", () => {
  const waited = { times: 1, attempts: 0, position: 1, turn: 1 };
  const changes: unknown[] = [];
  const processed = async (changesLine: boolean) => {
    const lone = start();
    const lines = {
      read: async () => ({ first: 1, next: 3, firstBy: 1, turn: 2, dueMs: 5, version: 7 }),
      change: async ({ line }: { readonly line: unknown }) => {
        changes.push(line);
        return changesLine;
      },
    };
    // Safe cast: a job without a limit takes no slot.
    const slots = lazy(async () => ({ lines })) as unknown as LoneRuntime["adapters"]["slots"];
    const adapters = { ...lone.adapters, slots };
    const { queue, asked } = queueOf({ isOrdered: true });
    const message = messageOf({ ...job, waited }, { group: "g" });
    const outcome = await processMessage(lone.runtime, adapters, queue, message);
    return { outcome, asked };
  };

  test("lets the next one run, even if this version of the server does not limit it", async () => {
    expect(await processed(true)).toEqual({ outcome: { kind: "done" }, asked: [] });
    expect(changes).toMatchObject([{ first: 2, next: 3 }]);
  });

  test("is redelivered if it cannot", async () => {
    expect(await processed(false)).toMatchObject({
      outcome: { kind: "later", afterMs: 1_000 },
      asked: [["changeVisibility", "receipt-1", 1_000]],
    });
  });
});
