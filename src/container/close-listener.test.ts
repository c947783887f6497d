import { EventEmitter } from "node:events";
import type { Server } from "node:net";
import { expect, test } from "vitest";
import { closeListener } from "./close-listener.ts";

/** Closes a listener to which a connection comes in each of its next turns; gives how many had come when it closed. */
async function connectionsUntilClosed(coming: number): Promise<number> {
  let came = 0;
  let isClosed = false;
  const listener = Object.assign(new EventEmitter(), {
    close: (whenEnded: () => void) => {
      isClosed = true;
      whenEnded();
    },
  });
  const turn = () => {
    if (isClosed || came === coming) return;
    came += 1;
    listener.emit("connection");
    setImmediate(turn);
  };
  setImmediate(turn);
  // Safe: it uses nothing else of a server.
  await new Promise<void>((resolve) => closeListener(listener as unknown as Server, resolve));
  expect(listener.listenerCount("connection")).toBe(0);
  return came;
}

test.each([0, 1, 7])("A listener closes once all that have come are accepted (%i)", async (coming) => {
  expect(await connectionsUntilClosed(coming)).toBe(coming);
});

test("A flood of connections does not keep a listener open", async () => {
  expect(await connectionsUntilClosed(Number.POSITIVE_INFINITY)).toBe(1_000);
});
