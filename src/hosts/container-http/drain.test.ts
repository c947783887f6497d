import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { closeListener } from "./drain.ts";

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

test.each([0, 1, 7])(
  "A listener closes once it has accepted all waiting connections (%i)",
  async (coming) => {
    expect(await connectionsUntilClosed(coming)).toBe(coming);
  },
);

test("A flood of connections does not keep a listener open", async () => {
  expect(await connectionsUntilClosed(Number.POSITIVE_INFINITY)).toBe(1_000);
});

/** A client of its own thread: connects when it is told to, says so, sends a request, and gives what comes of it. */
const client = `
  const { parentPort, workerData: { port, flag } } = require("node:worker_threads");
  const { connect } = require("node:net");
  parentPort.once("message", () => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write("GET / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n");
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
    });
    socket.on("data", (chunk) => { text += chunk; });
    socket.on("error", (error) => parentPort.postMessage(error.code));
    socket.on("end", () => parentPort.postMessage(text.split("\\r\\n")[0]));
  });
  parentPort.postMessage("ready");`;

test("A closing listener still serves a connection that arrives during a long turn of the event loop", async () => {
  const http = createServer(
    (_request: IncomingMessage, response: ServerResponse) => void response.end("served"),
  );
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(client, { eval: true, workerData: { port, flag } });
  await once(worker, "message");
  const outcome = once(worker, "message");
  // The rest of a turn that is taken up by other work, in which somebody connects.
  setImmediate(() => {
    worker.postMessage("connect");
    expect(Atomics.wait(flag, 0, 0, 10_000)).not.toBe("timed-out");
  });
  await new Promise<void>((resolve) => closeListener(http, resolve));

  expect(await outcome).toEqual(["HTTP/1.1 200 OK"]);
  await worker.terminate();
});

test("A busy process closes its listener all the same", async () => {
  const listener = Object.assign(new EventEmitter(), {
    close: (whenEnded: () => void) => whenEnded(),
  });
  let isClosed = false;
  const work = () => {
    if (isClosed) return;
    const untilMs = performance.now() + 5;
    while (performance.now() < untilMs);
    setImmediate(work);
  };
  setImmediate(work);
  // Safe: it uses nothing else of a server.
  await new Promise<void>((resolve) => closeListener(listener as unknown as Server, resolve));
  isClosed = true;

  expect(listener.listenerCount("connection")).toBe(0);
});
