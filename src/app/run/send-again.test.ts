import { describe, expect, test } from "vitest";
import { PermanentError } from "../../base/errors/errors.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { QueueMessage } from "../../parts/messages/message-queue.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import { type Waited, waitedOf } from "../../parts/messages/waited.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Consumed } from "./event-outcome.ts";
import type { GroupLine } from "./group-line.ts";
import { sendAgain } from "./send-again.ts";

const nowMs = 1_700_000_000_000;
const ordered = "scans.row.add";
const message: QueueMessage = {
  id: "m1",
  body: '{"jobId":"j1"}',
  receipt: "r",
  group: "acme",
  receives: 3,
  sentMs: nowMs - 60_000,
};
const job = { jobId: "j1", name: "scans.file.scan", tenantId: "acme", payload: {} };
// Safe casts: only the members that sending reads.
const ofJob = { job, proof: undefined } as unknown as ReadMessage;
const ofEvent = { event: {}, proof: undefined, source: undefined } as unknown as ReadMessage;

function start(isOrdered: boolean, error?: Error, maxReceives: number | "none" | Error = 5) {
  const sent: unknown[][] = [];
  const rows: OutboxRow[] = [];
  const lines: unknown[] = [];
  let refusal: readonly { code: string }[] | undefined;
  const adapters = {
    outbox: {
      items: (row: OutboxRow) => {
        rows.push(row);
        return [{}];
      },
    },
    claims: { commit: async () => refusal },
  } as unknown as Adapters;
  const runtime = {
    clock: { now: () => nowMs },
    log: { warn: (...given: unknown[]) => void lines.push(given) },
    server: { registry: { jobs: new Map([[ordered, { name: ordered, order: () => "1" }]]) } },
  } as unknown as Runtime;
  const queue = {
    name: "work",
    isOrdered,
    maxReceives: async () => {
      if (maxReceives instanceof Error) throw maxReceives;
      return maxReceives === "none" ? undefined : maxReceives;
    },
    sendLater: async (...given: unknown[]) => {
      if (error !== undefined) throw error;
      sent.push(given);
    },
  };
  const send = (
    read: ReadMessage,
    more: Partial<QueueMessage> = {},
    leastMs = 0,
    line?: Pick<GroupLine, "wait">,
    consumed?: readonly Consumed[],
  ) => {
    const received = { message: { ...message, ...more }, read, line, consumed };
    return sendAgain(runtime, adapters, queue, received, leastMs);
  };
  const refuse = (code: string) => {
    refusal = [{ code }];
  };
  return { send, sent, rows, lines, refuse };
}

const waited = '{"waited":{"times":1,"attempts":2,"sinceMs":1699999940000},"jobId":"j1"}';

test("sends a message to its queue with a delay, its group and its attempts so far", async () => {
  const { send, sent } = start(false);
  expect(await send(ofJob)).toBeUndefined();
  expect(sent).toEqual([[waited, "acme", expect.any(Number)]]);

  await send({ ...ofJob, waited: { times: 6, attempts: 2, sinceMs: 5 } }, { receives: 1 });
  expect(sent[1]?.[0]).toBe('{"waited":{"times":7,"attempts":2,"sinceMs":5},"jobId":"j1"}');
  expect(Number(sent[1]?.[2])).toBeGreaterThan(40_000);

  await send(ofJob, {}, 500_000);
  expect(sent[2]?.[2]).toBe(500_000);
});

test("puts a job of an ordered queue into the outbox, under an ID that the queue has not seen", async () => {
  const { send, rows, sent } = start(true);
  expect(await send(ofJob)).toBeUndefined();
  expect(await send(ofJob, { group: undefined })).toBeUndefined();
  expect(sent).toEqual([]);
  const [first, second] = rows.map(({ text }) => text.split(" "));
  expect(first?.slice(1)).toEqual(["acme", waited]);
  expect(second?.slice(1)).toEqual(["j1", waited]);
  expect(first?.[0]).not.toBe(second?.[0]);
  expect(Number(rows[0]?.sort.split("#")[0])).toBeGreaterThan(nowMs);
  expect(rows[0]).toMatchObject({ eventId: "j1", type: "scans.file.scan", tenantId: "acme" });
});

describe("a job with an order", () => {
  const inOrder = { ...ofJob, job: { ...job, name: "scans.row.add" } } as unknown as ReadMessage;

  test("keeps its place in the queue until its last receive", async () => {
    const { send, rows, lines } = start(true);
    expect(await send(inOrder, { receives: 4 }, 500_000)).toBe(500_000);
    expect(rows).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("is then sent again, without the receives in which it waited", async () => {
    const { send, rows, lines } = start(true);
    expect(await send(inOrder, { receives: 5 })).toBeUndefined();
    const text = '{"waited":{"times":1,"attempts":0,"sinceMs":1699999940000},"jobId":"j1"}';
    expect(rows.map((row) => row.text.split(" ").slice(1))).toEqual([["acme", text]]);
    const facts = { queue: "work", messageId: "m1", receives: 5, job: "scans.row.add" };
    expect(lines).toEqual([["queue.order_lost", facts]]);
  });

  test("keeps its place for ever in a queue without dead letters", async () => {
    const { send, rows } = start(true, undefined, "none");
    expect(await send(inOrder, { receives: 500 }, 500_000)).toBe(500_000);
    expect(rows).toEqual([]);
  });
});

describe("an event", () => {
  const body = '{"eventId":"e1"}';
  const ran = (name: string, outcome: Consumed["outcome"], hasReusableKey = false): Consumed => ({
    name,
    outcome,
    hasReusableKey,
  });
  const waits = ran("shop.waits", { kind: "handed-back", afterMs: 0, mustWait: true }, true);
  const noted = ran("shop.noted", { kind: "processed" });
  const failed = ran("shop.failed", { kind: "failed", error: new Error("no paper") });
  const torn = ran("shop.torn", { kind: "failed", error: new PermanentError("torn") });
  const stored = ran("shop.stored", { kind: "processed" }, true);
  const repeated = ran("shop.repeated", { kind: "skipped" }, true);

  /** Returns how the event has waited, as it is sent. */
  async function sentAs(
    consumed: readonly Consumed[],
    given?: Waited,
    of = body,
    most?: "none" | Error,
  ) {
    const { send, sent } = start(false, undefined, most);
    const read = { ...ofEvent, ...(given && { waited: given }) } as ReadMessage;
    expect(await send(read, { body: of }, 0, undefined, consumed)).toBeUndefined();
    const text = String(sent[0]?.[0]);
    return { text, waited: waitedOf(JSON.parse(text)) };
  }

  test("names the consumers that do not run again, and has all its attempts for the others", async () => {
    const { waited } = await sentAs([waits, noted, failed, torn, stored, repeated]);
    expect(waited).toEqual({
      ...{ times: 1, attempts: 0, sinceMs: nowMs - 60_000 },
      ...{ failed: ["shop.failed", "shop.torn"], reason: "no paper" },
      done: ["shop.stored", "shop.repeated"],
    });
    const later = await sentAs([waits, ran("shop.late", torn.outcome)], waited);
    expect(later.waited).toMatchObject({
      ...{ times: 2, attempts: 0, failed: ["shop.failed", "shop.torn", "shop.late"] },
      ...{ reason: "no paper", done: waited.done },
    });
    const again = await sentAs([waits], { ...waited, attempts: 1 });
    expect(again.waited).toMatchObject({ attempts: 3, failed: waited.failed });
  });

  test("has all its attempts again when one of its consumers succeeds", async () => {
    const given = { times: 1, attempts: 1 };
    expect((await sentAs([waits, noted], given)).waited).toMatchObject({ attempts: 0 });
    expect((await sentAs([waits, repeated], given)).waited).toMatchObject({ attempts: 3 });
  });

  test.each([
    ["without a dead-letter queue: it would never run again", "none", {}],
    ["whose attributes cannot be read, and keeps the others", new Error("denied"), "kept"],
  ] as const)("names no further failed consumer in a queue %s", async (_how, most, rest) => {
    const named = { failed: ["shop.early"], reason: "no ink" };
    const given = { times: 1, attempts: 0, ...named };
    const { waited } = await sentAs([waits, torn, repeated], given, body, most);
    expect(waited).toEqual({
      ...{ times: 2, attempts: 2, sinceMs: nowMs - 60_000 },
      ...(rest === "kept" && named),
      done: ["shop.repeated"],
    });
  });

  test("that is too large for the names is sent without them", async () => {
    const member = '{"waited":{"times":1,"attempts":0,"sinceMs":1699999940000},';
    const mostBytes = 1_048_576 - member.length + 1;
    const large = `{"eventId":"e1","text":"${"x".repeat(mostBytes - 26)}"}`;
    const { text, waited } = await sentAs([waits, torn], undefined, large);
    expect(text).toHaveLength(1_048_576);
    expect(waited).toEqual({ times: 1, attempts: 0, sinceMs: nowMs - 60_000 });
    const small = await sentAs([waits, torn], undefined, large.replace("x".repeat(100), ""));
    expect(small.waited).toMatchObject({ failed: ["shop.torn"] });
  });

  test("a job keeps no names that another sender has given it", async () => {
    const { send, sent } = start(false);
    await send({ ...ofJob, waited: { times: 1, attempts: 0, failed: ["shop.a"], done: ["b"] } });
    expect(waitedOf(JSON.parse(String(sent[0]?.[0])))).not.toHaveProperty("failed");
  });
});

test("returns the message instead if it cannot be sent", async () => {
  for (const isOrdered of [false, true]) {
    const { send, lines } = start(isOrdered, new Error("too large"));
    expect(await send(ofEvent)).toBeGreaterThan(0);
    expect(lines).toEqual([
      ["queue.send_again_failed", { queue: "work", messageId: "m1", reason: "Error: too large" }],
    ]);
  }
});

test("a job of a line has its place in its message, and is due when the line says", async () => {
  const { send, sent } = start(true);
  const rows: OutboxRow[] = [];
  const wait: GroupLine["wait"] = async (afterMs, rowOf) => {
    expect(afterMs).toBeGreaterThanOrEqual(9_000);
    rows.push(rowOf(nowMs + 5, { position: 3, turn: 9 }));
  };
  const ofOrder = { ...ofJob, job: { ...job, name: "scans.row.add" } } as ReadMessage;
  expect(await send(ofOrder, {}, 9_000, { wait })).toBeUndefined();
  expect(sent).toEqual([]);
  expect(rows[0]?.sort).toBe(`${String(nowMs + 5).padStart(15, "0")}#0000#j1`);
  const member = '"attempts":2,"sinceMs":1699999940000,"position":3,"turn":9},"jobId":"j1"}';
  expect(rows[0]?.text).toContain(member);
});

test("returns a message that the outbox refuses", async () => {
  const { send, lines, refuse } = start(true);
  refuse("ThrottlingError");
  expect(await send(ofJob)).toBeGreaterThan(0);
  const reason = "Error: the outbox refused it (ThrottlingError)";
  expect(lines).toMatchObject([["queue.send_again_failed", { reason }]]);
});
