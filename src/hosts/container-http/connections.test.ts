import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Logger } from "../../base/log/logger.ts";
import { type Connection, cutIfSilent, cutStalled, SmallSet } from "./connections.ts";

test("keeps the remaining members when others are removed in any order", () => {
  const set = new SmallSet<string>();
  for (const name of ["a", "b", "c", "d"]) set.add(name);
  expect([set.delete("b"), set.delete("b"), set.delete("d"), set.delete("x")]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  set.add("e");
  expect([set.size, ...set]).toEqual([3, "a", "c", "e"]);
  expect([
    set.delete("c"),
    set.delete("a"),
    set.delete("x"),
    set.delete("e"),
    set.delete("e"),
  ]).toEqual([true, true, false, true, false]);
  expect([set.size, ...set]).toEqual([0]);
});

test("visits all members, even when each is removed during its visit", () => {
  const set = new SmallSet<number>();
  for (const number of [1, 2, 3]) set.add(number);
  const seen: number[] = [];
  for (const number of set) {
    set.delete(number);
    seen.push(number);
  }
  expect([seen, set.size]).toEqual([[1, 2, 3], 0]);
});

/** Socket of a connection that has to be cut if it is silent. */
function silent() {
  const socket = { bytesRead: 0, isHeld: false, isCut: false };
  const connection = { idleAtBytes: 0 } as Connection; // safe: the only member that it reads
  cutIfSilent(connection, {
    get bytesRead() {
      return socket.bytesRead;
    },
    isPaused: () => socket.isHeld,
    destroy: () => {
      socket.isCut = true;
    },
  } as unknown as Duplex); // safe: the only members that it uses
  return socket;
}

test("cuts a silent connection after two turns in which it was not held back", async () => {
  const socket = silent();
  await turn();
  socket.isHeld = true;
  for (let turns = 0; turns < 5; turns += 1) await turn();
  socket.isHeld = false;
  await turn();
  expect(socket.isCut).toBe(false);
  await turn();
  expect(socket.isCut).toBe(true);
});

test("keeps a connection whose data arrives in one of these turns", async () => {
  const socket = silent();
  socket.bytesRead = 1;
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(socket.isCut).toBe(false);
});

/** Checks a connection whose client takes nothing, every five seconds from 0. */
function stalled() {
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  onTestFinished(() => now.mockRestore());
  const destroy = vi.fn();
  const transport = { _handle: { bytesWritten: 9, writeQueueSize: 5 } };
  const connection = { requests: new SmallSet(), transport };
  const known = new Map([[{ destroy }, connection]]);
  // Safe: the only members that it uses.
  const connections = { known } as unknown as Parameters<typeof cutStalled>[1];
  const log = { warn: () => undefined } as unknown as Logger;
  const timer = { unref: () => undefined } as unknown as NodeJS.Timeout;
  const interval = vi.spyOn(globalThis, "setInterval").mockReturnValueOnce(timer);
  cutStalled(new EventEmitter() as Server, connections, 30_000, log);
  const [look, everyMs] = interval.mock.calls[0] ?? [];
  interval.mockRestore();
  expect(everyMs).toBe(5_000);
  return {
    destroy,
    lookAt: (ms: number) => {
      now.mockReturnValue(ms);
      look?.();
    },
  };
}

test("cuts a client that takes nothing for the whole time", () => {
  const { destroy, lookAt } = stalled();
  for (let ms = 5_000; ms < 35_000; ms += 5_000) lookAt(ms);
  expect(destroy).not.toHaveBeenCalled();
  lookAt(35_000);
  expect(destroy).toHaveBeenCalledOnce();
});

test("does not count the time in which the process itself was blocked", () => {
  const { destroy, lookAt } = stalled();
  lookAt(5_000);
  for (let ms = 60_000; ms < 85_000; ms += 5_000) lookAt(ms);
  expect(destroy).not.toHaveBeenCalled();
  lookAt(85_000);
  expect(destroy).toHaveBeenCalledOnce();
});
