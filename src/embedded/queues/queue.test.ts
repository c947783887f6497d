import { beforeEach, expect, test } from "vitest";
import {
  createQueue,
  isReceipt,
  type Queue,
  type QueueMessage,
  type RememberedSend,
} from "./queue.ts";

const minute = 60_000;
const start = 1_000_000_000_000;
let ids = 0;
const messagesKept = new Map<string, QueueMessage>();
const sendsKept = new Map<string, RememberedSend>();
/** What a journal would hold. */
const kept = () => ({
  messages: [...messagesKept.values()],
  sends: [...sendsKept.values()],
});
beforeEach(() => {
  ids = 0;
  messagesKept.clear();
  sendsKept.clear();
});

const recorder =
  <Value>(entries: Map<string, Value>) =>
  (id: string, value?: Value) =>
    value === undefined ? entries.delete(id) : entries.set(id, value);

const create = (
  fifo: boolean,
  messages: readonly QueueMessage[] = [],
  sends: readonly RememberedSend[] = [],
) =>
  createQueue({
    fifo,
    messages,
    sends,
    createId: () => {
      ids += 1;
      return `id-${ids}`;
    },
    recordMessage: recorder(messagesKept),
    recordSend: recorder(sendsKept),
  });
const send = (queue: Queue, body: string, now: number, deduplicationId = body, group = "g") =>
  queue.send({ body, group, deduplicationId, delayMs: 0 }, now);
const receive = (queue: Queue, now: number, max = 10, more: { maxReceiveCount?: number } = {}) =>
  queue.receive({ max, visibilityMs: 30_000, ...more }, now);
const bodies = (messages: readonly QueueMessage[]) => messages.map(({ body }) => body);
test("remembers a deduplication ID for 5 minutes from the first send, not from a duplicate", () => {
  const queue = create(true);
  const first = send(queue, "x", start, "d");
  expect(send(queue, "x", start + 4 * minute, "d")).toMatchObject(first);
  expect(send(queue, "x", start + 5 * minute - 1, "d")).toMatchObject(first);
  const later = send(queue, "x", start + 5 * minute, "d");
  expect(later.id).not.toBe(first.id);
  expect(send(queue, "x", start + 9 * minute, "d")).toMatchObject(later);
  expect(queue.counts(start + 9 * minute).visible).toBe(2);
});

test("forgets each expired deduplication ID in its own time", () => {
  const queue = create(true);
  send(queue, "1", start);
  send(queue, "2", start + minute);
  send(queue, "3", start + 5 * minute);
  expect(kept().sends.map(({ deduplicationId }) => deduplicationId)).toEqual(["2", "3"]);
});

test("sequence numbers grow, even after a restart of an empty queue and with a clock that stands still", () => {
  const queue = create(true);
  const numbers = [
    send(queue, "1", start),
    send(queue, "2", start),
    send(queue, "3", start - 1),
  ].map(({ sequence }) => sequence);
  expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
  expect(new Set(numbers).size).toBe(3);
  const restarted = create(true, kept().messages, kept().sends);
  expect(send(restarted, "4", start - minute).sequence).toBeGreaterThan(numbers[2] ?? 0);
  expect(send(create(true), "5", start + 1).sequence).toBeGreaterThan(numbers[2] ?? 0);
});

test("a restart keeps order, messages in flight, handles and deduplication IDs", () => {
  const queue = create(true);
  for (const body of ["1", "2", "3"]) send(queue, body, start);
  send(queue, "other", start + 1, "other", "h");
  const [first] = receive(queue, start + 2, 1).taken;
  const { messages, sends } = kept();
  const restarted = create(true, messages.toReversed(), sends.toReversed());
  expect(bodies(receive(restarted, start + 3).taken)).toEqual(["other"]);
  expect(send(restarted, "1", start + 4).id).toBe(first?.id);
  expect(restarted.delete(first?.receipt ?? "", start + 5)).toBe("deleted");
  expect(bodies(receive(restarted, start + 6).taken)).toEqual(["2", "3"]);
});

test("a visible message can be received by a clock that is behind", () => {
  const queue = create(true);
  send(queue, "sent", start);
  const [message] = receive(queue, start - minute).taken;
  expect(message?.body).toBe("sent");
  expect(queue.changeVisibility(message?.receipt ?? "", 0, start - minute)).toBe("changed");
  expect(receive(queue, start - 2 * minute).taken).toHaveLength(1);
});

test("a message that becomes visible again after its last allowed receive is dead", () => {
  const queue = create(false);
  send(queue, "x", start);
  for (const at of [0, 30_000])
    expect(receive(queue, start + at, 1, { maxReceiveCount: 2 }).taken).toHaveLength(1);
  expect(receive(queue, start + 59_999, 1, { maxReceiveCount: 2 })).toEqual({
    taken: [],
    dead: [],
  });
  const { taken, dead } = receive(queue, start + 60_000, 1, { maxReceiveCount: 2 });
  expect([taken, bodies(dead)]).toEqual([[], ["x"]]);
  expect(kept().messages).toEqual([]);
});

test("dead messages do not count towards the number of messages to receive", () => {
  const queue = create(true);
  for (const body of ["1", "2", "3"]) send(queue, body, start);
  receive(queue, start, 2);
  const { taken, dead } = receive(queue, start + minute, 1, { maxReceiveCount: 1 });
  expect([bodies(taken), bodies(dead)]).toEqual([["3"], ["1", "2"]]);
});

test("a message accepted from another queue starts over, behind the others", () => {
  const [source, target] = [create(true), create(true)];
  send(source, "moved", start);
  const [message] = receive(source, start).taken;
  send(target, "first", start + 1);
  if (message) target.accept({ ...message, deadLetterSource: "arn" }, start + 1);
  const [, moved] = receive(target, start + 1).taken;
  expect(moved).toMatchObject({
    id: message?.id,
    body: "moved",
    group: "g",
    deadLetterSource: "arn",
    receiveCount: 1,
  });
  expect(moved?.firstReceivedAt).toBe(start + 1);
  expect(moved?.receipt).not.toBe(message?.receipt);
});

test("a delayed message holds up those behind it in its group", () => {
  const queue = create(true);
  queue.send({ body: "1", group: "g", delayMs: 1000 }, start);
  send(queue, "2", start);
  expect(receive(queue, start).taken).toEqual([]);
  expect(queue.nextVisibleAt(start)).toBe(start + 1000);
  expect(bodies(receive(queue, start + 1000).taken)).toEqual(["1", "2"]);
});

test("a message in flight holds up no others in a standard queue", () => {
  const queue = create(false);
  for (const body of ["1", "2"]) send(queue, body, start);
  receive(queue, start, 1);
  expect(bodies(receive(queue, start).taken)).toEqual(["2"]);
});

test("counts visible, in-flight and delayed messages, and tells when the next becomes visible", () => {
  const queue = create(false);
  for (const body of ["1", "2", "3"]) send(queue, body, start);
  queue.send({ body: "late", delayMs: 1000 }, start);
  receive(queue, start, 1);
  expect(queue.counts(start)).toEqual({ visible: 2, inFlight: 1, delayed: 1 });
  expect(queue.counts(start + minute)).toEqual({ visible: 4, inFlight: 0, delayed: 0 });
  expect(queue.nextVisibleAt(start)).toBe(start + 1000);
  expect(queue.nextVisibleAt(start + 1000)).toBe(start + 30_000);
  expect(queue.nextVisibleAt(start + minute)).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  [false, "deleted"],
  [true, "expired"],
])("an expired handle deletes in a standard queue only (FIFO: %s)", (fifo, outcome) => {
  const queue = create(fifo);
  send(queue, "x", start);
  const [message] = receive(queue, start).taken;
  expect(queue.delete(message?.receipt ?? "", start + 30_000)).toBe(outcome);
  expect(queue.delete(message?.receipt ?? "", start + 30_000)).toBe(fifo ? "expired" : "missing");
});

test("only the newest handle has an effect, and only a message in flight can change its visibility", () => {
  const queue = create(false);
  send(queue, "x", start);
  const handle = (now: number) => receive(queue, now).taken[0]?.receipt ?? "";
  const [old, newest] = [handle(start), handle(start + 30_000)];
  const now = start + 30_001;
  expect([queue.delete(old, now), queue.changeVisibility(old, 0, now)]).toEqual([
    "outdated",
    "outdated",
  ]);
  expect(queue.changeVisibility(newest, 100_000, now)).toBe("changed");
  expect(receive(queue, now + 99_999).taken).toEqual([]);
  expect(queue.changeVisibility(newest, 0, now + 100_000)).toBe("visible");
  expect(queue.delete(newest, now)).toBe("deleted");
  expect(queue.changeVisibility(newest, 0, now)).toBe("missing");
});

test("removes matching messages, and clears all of them", () => {
  const queue = create(true);
  for (const body of ["1", "2", "3"]) send(queue, body, start);
  expect(bodies(queue.remove(({ body }) => body < "3"))).toEqual(["1", "2"]);
  expect([kept().messages.length, kept().sends.length]).toEqual([1, 3]);
  queue.clear();
  expect(kept()).toEqual({ messages: [], sends: [] });
  send(queue, "1", start);
  expect(queue.counts(start).visible).toBe(1);
});

test("tells a receipt handle from any other text", () => {
  const queue = create(false);
  send(queue, "x", start);
  expect(isReceipt(receive(queue, start).taken[0]?.receipt ?? "")).toBe(true);
  for (const text of [
    "",
    "junk",
    "a:b",
    Buffer.from(":b").toString("base64url"),
    `${Buffer.from("a:b").toString("base64url")}!`,
  ]) {
    expect([text, isReceipt(text)]).toEqual([text, false]);
  }
});
