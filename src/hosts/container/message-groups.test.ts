import { expect, test } from "vitest";
import type { QueueMessage } from "../../parts/messages/message-queue.ts";
import { messageGroups } from "./message-groups.ts";

/** A batch with the group of each message. */
const batch = (groups: string) =>
  [...groups].map((group, n) => ({ id: `${group}${n}`, group }) as QueueMessage); // safe: nothing else is read
const idsOf = (groups: readonly QueueMessage[][]) => groups.map((of) => of.map(({ id }) => id));

test("tenants of a standard queue take turns, and none of their messages waits for another", () => {
  const groups = messageGroups({ isOrdered: false }, batch("aaaab"));
  expect(idsOf(groups)).toEqual([["a0"], ["b4"], ["a1"], ["a2"], ["a3"]]);
});

test("messages of a group of a FIFO queue stay together, in their order", () => {
  const groups = messageGroups({ isOrdered: true }, batch("abaab"));
  expect(idsOf(groups)).toEqual([
    ["a0", "a2", "a3"],
    ["b1", "b4"],
  ]);
});
