import { expect, test } from "vitest";
import type { LineChange, StoredLine } from "../../parts/limits/line.ts";
import type { ReadMessage } from "../../parts/messages/message-guard.ts";
import type { QueueMessage } from "../../parts/messages/message-queue.ts";
import type { OutboxRow } from "../../parts/messages/outbox-store.ts";
import type { Waited } from "../../parts/messages/waited.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { openLine } from "./group-line.ts";

const nowMs = 1_700_000_000_000;
const row = { shard: "due#0", sort: "1#a" } as OutboxRow;

type Read = Parameters<typeof openLine>[4];

interface Opened {
  readonly waited?: Waited;
  readonly conflicts?: number;
  readonly message?: QueueMessage;
}

/** Opens the line of a job. Changes are refused as often as `conflicts` says. */
async function open({
  waited,
  conflicts = 0,
  message = { id: "m1", group: "g" } as QueueMessage,
}: Opened = {}) {
  const changes: LineChange[] = [];
  const lines: unknown[][] = [];
  const reads: string[] = [];
  let stored: StoredLine | undefined;
  const store = {
    read: async (of: string) => {
      reads.push(of);
      return stored;
    },
    change: async (change: LineChange) => {
      changes.push(change);
      if (changes.length <= conflicts) return false;
      stored = { ...change.line, version: changes.length };
      return true;
    },
  };
  // Safe casts: only the members that a line uses.
  const adapters = {
    slots: { open: async () => ({ lines: store }) },
    outbox: { items: (given: OutboxRow) => [{ Put: given }] },
  } as unknown as Adapters;
  const runtime = {
    clock: { now: () => nowMs },
    log: { warn: (...given: unknown[]) => void lines.push(given) },
  } as unknown as Runtime;
  const job = { jobId: "j1", name: "scans.file.scan", tenantId: "acme", payload: {} };
  const read = { job, proof: undefined, waited } as unknown as ReadMessage as Read;
  const line = await openLine(runtime, adapters, { name: "jobs" }, message, read);
  return { line, changes, lines, reads };
}

test("a job that has not waited joins the line in the transaction that stores it", async () => {
  const { line, changes, reads } = await open();
  expect(line.mayRun).toBe(true);
  expect(await line.leave()).toBe(true);
  expect(changes).toEqual([]);
  await line.wait(5_000, (dueMs, place) => {
    expect({ dueMs, place }).toEqual({ dueMs: nowMs + 5_000, place: { position: 1, turn: 1 } });
    return row;
  });
  expect(changes).toMatchObject([
    { group: "g", tenantId: "acme", items: [{ Put: row }], line: { first: 1, next: 2 } },
  ]);
  expect(changes[0]?.expiresAt).toBe(nowMs / 1000 + 28 * 86_400);
  expect(reads).toEqual(["g", "g"]);
});

test("a job without a group is its own", async () => {
  const message = { id: "m1", group: undefined } as QueueMessage;
  expect((await open({ message })).reads).toEqual(["j1"]);
});

test("a change is repeated while others change the line, and then given up", async () => {
  const waited = { times: 1, attempts: 0, position: 1, turn: 1 };
  const { line, changes } = await open({ waited, conflicts: 2 });
  await line.wait(5_000, () => row);
  expect(changes).toHaveLength(3);
  expect(await line.leave()).toBe(true);
  expect(changes.at(-1)).toMatchObject({ items: [], line: { first: 2, next: 2 } });
  // It has left already.
  expect(await line.leave()).toBe(true);
  expect(changes).toHaveLength(4);

  const busy = await open({ waited, conflicts: 100 });
  await expect(busy.line.wait(5_000, () => row)).rejects.toThrow("keeps changing");
  const more = await open({ waited: { ...waited, position: 9 }, conflicts: 100 });
  expect(await more.line.leave()).toBe(false);
  expect(more.lines).toEqual([
    [
      "queue.line_failed",
      { queue: "jobs", messageId: "m1", reason: "Error: the line of its group keeps changing" },
    ],
  ]);
});

test("a job that waits for another one comes back soon after it", async () => {
  const waiting = await open();
  await waiting.line.wait(60_000, () => row);
  // The line has a job now.
  await waiting.line.wait(60_000, (dueMs) => {
    expect(dueMs).toBe(nowMs + 60_001);
    return row;
  });
});
