import { expect, test } from "vitest";
import { createQueue, type Queue, type QueueMessage } from "./queue.ts";

const start = 1_000_000_000_000;
const minute = 60_000;

let ids = 0;

function create(stored: readonly QueueMessage[] = []) {
  const kept = new Map<string, QueueMessage>();
  const queue = createQueue({
    fifo: false,
    messages: stored,
    sends: [],
    createId: () => `id-${ids++}`,
    recordMessage: (id, value) => (value === undefined ? kept.delete(id) : kept.set(id, value)),
    recordSend: () => undefined,
  });
  return { queue, kept };
}

const sendTo = (queue: Queue, group: string | undefined, count: number, now = start) => {
  for (let index = 0; index < count; index += 1)
    queue.send({ body: `${group} ${index}`, group, delayMs: 0 }, now);
};
const receive = (queue: Queue, max: number, now = start, visibilityMs = 30 * minute) =>
  queue.receive({ max, visibilityMs }, now).taken;
const end = (queue: Queue, { receipt = "" }: QueueMessage, now: number) =>
  expect(queue.delete(receipt, now)).toBe("deleted");
const groups = (messages: readonly QueueMessage[]) => messages.map(({ group }) => group);
const times = (count: number, group: string | undefined) =>
  Array.from({ length: count }, () => group);

test("delivers in the order of sending while no tenant is noisy", () => {
  const { queue } = create();
  sendTo(queue, "loud", 40);
  sendTo(queue, "calm", 1);
  expect(groups(receive(queue, 29))).toEqual(times(29, "loud"));
  expect(groups(receive(queue, 12))).toEqual([...times(11, "loud"), "calm"]);
});

test("delivers quiet tenants first once a tenant has 30 messages and over 10 % in flight", () => {
  const { queue } = create();
  queue.send({ body: "delayed", group: "calm", delayMs: minute }, start);
  sendTo(queue, undefined, 1);
  sendTo(queue, "loud", 40);
  sendTo(queue, "calm", 2);
  sendTo(queue, undefined, 1);
  receive(queue, 31);
  const calm = ["calm", "calm", undefined];
  expect(groups(receive(queue, 5))).toEqual([...calm, "loud", "loud"]);
});

test("does not take 30 messages for noise at 10 % of the messages in flight", () => {
  const { queue } = create();
  for (let tenant = 0; tenant < 270; tenant += 1) sendTo(queue, `other-${tenant}`, 1);
  sendTo(queue, "large", 31);
  sendTo(queue, "calm", 1);
  receive(queue, 300);
  expect(groups(receive(queue, 2))).toEqual(["large", "calm"]);
});

test("counts messages without a group as a tenant each, which is never noisy", () => {
  const { queue } = create();
  sendTo(queue, undefined, 60);
  sendTo(queue, "calm", 1);
  const taken = receive(queue, 50);
  for (const message of taken) end(queue, message, start + minute);
  expect(groups(receive(queue, 20, start + minute))).toEqual([...times(10, undefined), "calm"]);
});

test("delivers quiet tenants first once a tenant has over 10 % of the processing time", () => {
  const { queue } = create();
  sendTo(queue, "slow", 3);
  sendTo(queue, "calm", 1);
  const [first] = receive(queue, 1) as [QueueMessage];
  end(queue, first, start + 2_000);
  expect(groups(receive(queue, 2, start + 2_000))).toEqual(["calm", "slow"]);
});

test("does not judge by less than a second of processing time, nor by time before 5 minutes", () => {
  const { queue } = create();
  sendTo(queue, "brief", 4);
  sendTo(queue, "calm", 2);
  const [first, second] = receive(queue, 2) as [QueueMessage, QueueMessage];
  end(queue, first, start);
  end(queue, second, start + 999);
  expect(groups(receive(queue, 1, start + 999, 1))).toEqual(["brief"]);
  const later = start + 6 * minute;
  sendTo(queue, "brief", 1, later);
  const [third] = receive(queue, 1, later) as [QueueMessage];
  end(queue, third, later + 1_000);
  const last = later + 6 * minute;
  sendTo(queue, "brief", 1, last);
  expect(groups(receive(queue, 1, last))).toEqual(["brief"]);
});

test("forgets processing times in large numbers", () => {
  const { queue } = create();
  sendTo(queue, "old", 1_200);
  for (const message of receive(queue, 1_200)) end(queue, message, start + 1_000);
  const later = start + 10 * minute;
  sendTo(queue, "old", 1, later);
  sendTo(queue, "calm", 1, later);
  expect(groups(receive(queue, 1, later))).toEqual(["old"]);
});

test("delivers first from the noisy tenant with the fewest messages in flight", () => {
  const { queue } = create();
  sendTo(queue, "louder", 41);
  sendTo(queue, "loud", 32);
  receive(queue, 71);
  sendTo(queue, "louder", 2);
  expect(groups(receive(queue, 4))).toEqual(["loud", "loud", "louder", "louder"]);
});

test("takes a noisy tenant for quiet once its backlog is empty", () => {
  const { queue } = create();
  sendTo(queue, "loud", 32);
  const taken = receive(queue, 30);
  receive(queue, 2);
  expect(receive(queue, 1)).toEqual([]);
  for (const message of taken.slice(1)) end(queue, message, start);
  sendTo(queue, "loud", 1);
  sendTo(queue, "calm", 1);
  expect(groups(receive(queue, 2))).toEqual(["loud", "calm"]);
});

test("takes a noisy tenant for quiet 5 minutes after its last message", () => {
  const { queue } = create();
  sendTo(queue, "loud", 33);
  receive(queue, 30);
  sendTo(queue, "calm", 1, start + 5 * minute - 1);
  expect(groups(receive(queue, 1, start + 5 * minute - 1))).toEqual(["calm"]);
  sendTo(queue, "calm", 1, start + 5 * minute);
  expect(groups(receive(queue, 1, start + 5 * minute))).toEqual(["loud"]);
});

test("counts sends of before a restart, and messages that come from a dead-letter queue", () => {
  const before = create();
  sendTo(before.queue, "loud", 31);
  receive(before.queue, 30);
  const { queue } = create([...before.kept.values()]);
  sendTo(queue, "calm", 1);
  expect(groups(receive(queue, 1))).toEqual(["calm"]);
  const [moved] = receive(queue, 1) as [QueueMessage];
  expect(moved.group).toBe("loud");
  const later = start + 6 * minute;
  queue.accept({ ...moved, id: "moved" }, later);
  sendTo(queue, "calm", 1, later);
  expect(groups(receive(queue, 2, later))).toEqual(["calm", "loud"]);
});

test("does not count the processing of a message whose receive was not recorded", () => {
  const before = create();
  sendTo(before.queue, "slow", 3);
  const [{ receivedAt: _, ...taken }] = receive(before.queue, 1) as [QueueMessage];
  const { queue } = create([...before.kept.values(), taken]);
  sendTo(queue, "calm", 1);
  end(queue, taken, start + minute);
  expect(groups(receive(queue, 3, start + minute))).toEqual(["slow", "slow", "calm"]);
});

/**
 * 40 messages are in flight at any time, each for a step of a second. Returns the waits of nine
 * tenants with 10 messages each, in steps, in ascending order.
 */
function waitsBeside(backlog: number) {
  const { queue } = create();
  sendTo(queue, "loud", backlog);
  let now = start;
  const step = () => {
    const taken = [1, 2, 3, 4].flatMap(() => receive(queue, 10, now));
    now += 1_000;
    for (const message of taken) end(queue, message, now);
    return taken;
  };
  step(); // the nine start while the backlog is in progress
  const sentAt = now;
  for (let tenant = 0; tenant < 9; tenant += 1) sendTo(queue, `tenant ${tenant}`, 10, now);
  const waits: number[] = [];
  while (waits.length < 90) {
    const receivedAt = now;
    for (const { group } of step())
      if (group?.startsWith("tenant") === true) waits.push((receivedAt - sentAt) / 1_000);
  }
  return waits.toSorted((one, other) => one - other);
}

test("nine tenants behind a backlog of 10,000 wait at most twice as long as without it", () => {
  const p95 = (waits: readonly number[]) => waits[Math.ceil(waits.length * 0.95) - 1] as number;
  const [alone, beside] = [waitsBeside(0), waitsBeside(10_000)].map(p95) as [number, number];
  expect(alone).toBeGreaterThan(0);
  expect(beside).toBeLessThanOrEqual(2 * alone);
});
