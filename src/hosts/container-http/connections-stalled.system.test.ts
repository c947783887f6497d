import { once } from "node:events";
import { Duplex } from "node:stream";
import { afterEach, expect, test } from "vitest";
import {
  bigBytes,
  closeAll,
  frame,
  getOf,
  http2Client,
  mebibyte,
  preface,
  type RawClient,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";
import { cutStalled, followConnections } from "./connections.ts";

afterEach(closeAll);

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: r1\r\n\r\n`;

/** A client that has sent its request and reads nothing. */
async function deaf(
  port: number,
  text: string | Buffer,
  protocol?: "http/1.1" | "h2",
): Promise<RawClient> {
  const client = await rawClient(port, "", protocol);
  client.socket.pause();
  client.socket.write(text);
  return client;
}

test.each([
  ["in the clear", undefined],
  ["over TLS", "http/1.1"],
] as const)(
  "an unread response ends its connection after writeTimeoutMs, %s, with one line",
  async (_name, protocol) => {
    const { port, connections, logs } = await serveBounded({
      writeTimeoutMs: 200,
      ...(protocol === undefined ? {} : { tls }),
    });
    await deaf(port, ask("/big"), protocol);

    await expect.poll(() => logs.length).toBe(1);
    expect(logs).toMatchObject([
      {
        level: "warn",
        msg: "response.stalled",
        requestId: "r1",
        method: "GET",
        path: "/big",
        timeoutMs: 200,
      },
    ]);
    await expect.poll(() => connections.known.size).toBe(0);
  },
);

test("cancels a stream that its client does not read, and logs one line", async () => {
  const { port, connections, logs, probe } = await serveBounded({ writeTimeoutMs: 200 });
  await deaf(port, ask("/endless"));

  await expect.poll(() => probe.cancelled).toBe(1);
  await expect.poll(() => connections.known.size).toBe(0);
  expect(logs).toMatchObject([
    { level: "warn", msg: "response.stalled", requestId: "r1", path: "/endless" },
  ]);
});

test("cuts off a client that reads nothing, even when it keeps sending", async () => {
  const { port, connections, said } = await serveBounded({ writeTimeoutMs: 200 });
  const { socket } = await deaf(port, ask("/big"));
  const sending = setInterval(() => socket.write("\r\n"), 20);
  await expect
    .poll(() => said("response.stalled").length)
    .toBe(1)
    .finally(() => clearInterval(sending));

  await expect.poll(() => connections.known.size).toBe(0);
});

test("a slow reader gets all of a large response", async () => {
  const { port, logs } = await serveBounded({ writeTimeoutMs: 4_000 });
  const client = await deaf(port, ask("/big"));
  const startMs = performance.now();
  // In twice the time that a standstill may take.
  const reading = setInterval(() => {
    const before = client.bytes();
    client.socket.on("data", function enough() {
      if (client.bytes() - before < 2 * mebibyte) return;
      client.socket.off("data", enough);
      client.socket.pause();
    });
    client.socket.resume();
  }, 600);
  await expect
    .poll(client.bytes)
    .toBeGreaterThan(bigBytes)
    .finally(() => clearInterval(reading));

  expect(performance.now() - startMs).toBeGreaterThan(8_000);
  expect(logs).toEqual([]);
});

test("a handler and an upgraded connection may take longer than writeTimeoutMs", async () => {
  const { port, probe, logs, said } = await serveBounded({
    writeTimeoutMs: 50,
    upgrade: (_request, socket) => void socket.write(Buffer.alloc(bigBytes)),
  });
  const upgraded = await deaf(
    port,
    "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
  );
  const waiting = await rawClient(port, ask("/held/a"));
  await deaf(port, ask("/big"));
  await expect.poll(() => said("response.stalled").length).toBe(1); // the others have had as much time
  probe.letGo();

  await expect.poll(waiting.got).toContain('{"name":"a"}');
  expect(upgraded.socket.destroyed).toBe(false);
  expect(logs).toMatchObject([{ msg: "response.stalled", path: "/big" }]);
});

test("over HTTP/2, a handler may take longer too, before its response and in the middle of it", async () => {
  const { port, probe, said, logs } = await serveBounded({ tls, writeTimeoutMs: 500 });
  const [session, closed] = [
    await http2Client(port),
    await http2Client(port, { settings: { initialWindowSize: 0 } }),
  ];
  const waiting = ["/held/a", "/halting"].map((path) => session.request({ ":path": path }));
  await expect.poll(() => probe.began).toBe(2);
  const stalled = closed.request({ ":path": "/text" });
  stalled.on("error", () => {});
  await expect.poll(() => said("response.stalled").length).toBe(1); // the others have had as much time
  probe.letGo();
  const answers = await Promise.all(
    waiting.map(async (stream) => (await stream.toArray()).join("")),
  );

  expect(answers).toEqual(['{"name":"a"}', "chunk 1 chunk 2 "]);
  expect(logs).toHaveLength(1);
});

test.each(["/text", "/large", "/big", "/endless"])(
  "over HTTP/2, resets a stream whose window stays closed, and serves others: %s",
  async (path) => {
    const { port, connections, logs, probe } = await serveBounded({ tls, writeTimeoutMs: 200 });
    const session = await http2Client(port, { settings: { initialWindowSize: 0 } });
    const stuck = session.request({ ":path": path, "x-request-id": "r1" });
    stuck.on("error", () => {});
    await new Promise((resolve) => stuck.once("close", resolve));

    expect(stuck.rstCode).toBe(2);
    await expect
      .poll(() => [...connections.known.values()].map(({ requests }) => requests.size))
      .toEqual([0]);
    expect(logs).toMatchObject([
      { level: "warn", msg: "response.stalled", requestId: "r1", method: "GET", path },
    ]);
    expect(probe.cancelled).toBe(path === "/endless" ? 1 : 0);
    const head = session.request({ ":path": "/text", ":method": "HEAD" });
    expect((await once(head, "response"))[0]).toMatchObject({ ":status": 200 });
  },
);

test("over HTTP/2, resets streams when the connection's window stays closed", async () => {
  const { port, said } = await serveBounded({ tls, writeTimeoutMs: 200 });
  const wide = preface([4, 2 ** 31 - 1]); // SETTINGS_INITIAL_WINDOW_SIZE; that of the connection stays at 65,535
  await rawClient(
    port,
    Buffer.concat([wide, frame(1, 5, 1, getOf("/big")), frame(1, 5, 3, getOf("/large"))]),
    "h2",
  );

  await expect
    .poll(() => said("response.stalled").map(({ path }) => path))
    .toEqual(["/big", "/large"]);
});

test("over HTTP/2, ends a connection that takes no bytes, even when its windows are open", async () => {
  const { port, connections, said, probe } = await serveBounded({ tls, writeTimeoutMs: 200 });
  const window = Buffer.alloc(4);
  window.writeUInt32BE(2 ** 31 - 1 - 65_535);
  await deaf(
    port,
    Buffer.concat([
      preface([4, 2 ** 31 - 1]),
      frame(8, 0, 0, window),
      frame(1, 5, 1, getOf("/endless")),
    ]),
    "h2",
  );

  await expect.poll(() => said("response.stalled").length).toBe(1);
  await expect.poll(() => connections.known.size).toBe(0);
  await expect.poll(() => probe.cancelled).toBe(1);
  expect(said("response.stalled")).toMatchObject([{ path: "/endless" }]);
  expect(said("request.aborted")).toEqual([]);
});

test("over HTTP/2, a slow reader gets all of a large response", async () => {
  const { port, logs } = await serveBounded({ tls, writeTimeoutMs: 4_000 });
  const session = await http2Client(port);
  const stream = session.request({ ":path": "/mebibyte" });
  const startMs = performance.now();
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.byteLength;
    stream.pause();
    setTimeout(() => stream.resume(), 150);
  });
  await once(stream, "end");

  expect(bytes).toBe(mebibyte);
  expect(performance.now() - startMs).toBeGreaterThan(8_000);
  expect(logs).toEqual([]);
});

test("ends a connection that is stuck with bytes of no request", async () => {
  const { http, runtime, said } = await serveBounded();
  const socket = Object.assign(new Duplex(), { _handle: { bytesWritten: 10, writeQueueSize: 5 } });
  const connections = followConnections(http, false);
  connections.of(socket);
  cutStalled(http, connections, 40, runtime.log);
  await once(socket, "close");

  expect(said("response.stalled")).toEqual([
    expect.objectContaining({ level: "warn", timeoutMs: 40 }),
  ]);
});
