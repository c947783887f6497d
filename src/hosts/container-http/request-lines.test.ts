import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import {
  type Bounded,
  bigBytes,
  closeAll,
  http2Client,
  mebibyte,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";

afterEach(closeAll);

const serving = (options: Parameters<typeof serveBounded>[0] = {}) =>
  serveBounded(options, { bodyBytes: mebibyte }, {});
const ask = (path: string, method = "GET") =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: r1\r\n\r\n`;
const bytesHead = (more = "") =>
  `POST /size HTTP/1.1\r\nhost: x\r\n${more}content-type: application/octet-stream\r\ncontent-length: 70000\r\n\r\n`;
/** The lines of requests that are over, without what differs from run to run. */
async function ended({ said }: Bounded, count = 1): Promise<Readonly<Record<string, unknown>>[]> {
  await expect.poll(() => said("request.completed").length).toBe(count);
  return said("request.completed").map(
    ({ time, requestId, trace_id, msg, durationMs, ...line }) => {
      expect(durationMs).toEqual(expect.any(Number));
      return line;
    },
  );
}

const requestsOf = ({ connections }: Bounded) =>
  new Set([...connections.known.values()].flatMap(({ requests }) => [...requests]));
const whole = { level: "info", method: "GET", replayed: false, coldStart: true };

test("logs one line at a request's end: method, pattern, status, bytes of the body", async () => {
  const served = await serving();
  const client = await rawClient(served.port, ask("/held/a"));
  await expect.poll(() => served.probe.running).toBe(1);
  expect(served.logs).toEqual([]);
  served.probe.letGo();

  await expect.poll(() => client.got()).toContain('{"name":"a"}');
  expect(await ended(served)).toEqual([
    { ...whole, handler: "bounded.text.held", route: "/held/:name", status: 200, bytes: 12 },
  ]);
});

test("counts all bytes of a response sent in pieces, and none for HEAD", async () => {
  const served = await serving();
  for (const [path, method] of [
    ["/large"],
    ["/large", "HEAD"],
    ["/mebibyte"],
    ["/nowhere"],
  ] as const) {
    const client = await rawClient(
      served.port,
      ask(path, method).replace("host", "connection: close\r\nhost"),
    );
    await client.closed;
  }

  const [text, head, bytes, unknown] = await ended(served, 4);
  expect(text).toEqual({
    ...whole,
    handler: "bounded.text.large",
    route: "/large",
    status: 200,
    bytes: 200_000,
  });
  expect(head).toMatchObject({ method: "HEAD", status: 200, bytes: 0, coldStart: false });
  expect(bytes).toMatchObject({ status: 200, bytes: mebibyte });
  expect(unknown).toEqual({ ...whole, coldStart: false, status: 404, bytes: expect.any(Number) });
});

test("logs a stream's line at its end, with all of its bytes", async () => {
  const served = await serving();
  const client = await rawClient(served.port, ask("/halting"));
  await expect.poll(() => client.got()).toContain("chunk 1");
  expect(served.logs).toEqual([]);
  served.probe.letGo();

  await expect.poll(() => client.got()).toContain("chunk 2");
  expect(await ended(served)).toMatchObject([{ route: "/halting", status: 200, bytes: 16 }]);
});

test.each([
  ["a whole answer", "/big"],
  ["a stream", "/endless"],
])(
  "%s whose client leaves midway is logged as aborted, with the bytes sent",
  async (_name, path) => {
    const served = await serving();
    const client = await rawClient(served.port, ask(path));
    client.socket.on("data", () => {
      if (client.bytes() > 2 * mebibyte) client.socket.destroy();
    });

    const [line] = await ended(served);
    expect(line).toMatchObject({ status: 200, aborted: true });
    expect(line?.["bytes"]).toBeGreaterThan(mebibyte);
    if (path === "/big") expect(line?.["bytes"]).toBeLessThan(bigBytes);
  },
);

test("a client that leaves before the response is logged as aborted, with 0 bytes, when the handler ends", async () => {
  const served = await serving();
  const client = await rawClient(served.port, ask("/held/a"));
  await expect.poll(() => served.probe.running).toBe(1);
  client.socket.destroy();
  await expect.poll(() => served.connections.known.size).toBe(0);
  expect(served.logs).toEqual([]);
  served.probe.letGo();

  expect(await ended(served)).toMatchObject([{ status: 200, bytes: 0, aborted: true }]);
});

test("logs no line for a request that waited until its client left and never began", async () => {
  const served = await serving({ tls });
  const session = await http2Client(served.port);
  const open = (path: string) =>
    session
      .request({ ":path": path })
      .on("error", () => {})
      .resume();
  const held = Array.from({ length: 100 }, () => open("/held/a"));
  await expect.poll(() => served.probe.running).toBe(100);
  // A handler whose stream was reset goes on, and makes no room.
  held[0]?.close(8);
  await expect.poll(() => requestsOf(served).size).toBe(99);
  const waiting = open("/text");
  await expect.poll(() => requestsOf(served).size).toBe(100);
  waiting.close(8);
  await expect.poll(() => requestsOf(served).size).toBe(99);
  served.probe.letGo();

  const lines = await ended(served, 100);
  expect(new Set(lines.map(({ route }) => route))).toEqual(new Set(["/held/:name"]));
});

test("logs no line for pipelined requests that waited until their connection closed", async () => {
  const served = await serving();
  const client = await rawClient(served.port, ask("/held/a").repeat(300));
  await expect.poll(() => served.probe.running).toBe(100);
  await expect.poll(() => requestsOf(served).size).toBeGreaterThan(100);
  client.socket.destroy();
  for (const [socket] of served.connections.known) socket.destroy(); // nothing is read that would say so
  await expect.poll(() => served.connections.known.size).toBe(0);
  served.probe.letGo();

  const lines = await ended(served, 100);
  expect(new Set(lines.map(({ route, aborted }) => [route, aborted].join()))).toEqual(
    new Set(["/held/:name,true"]),
  );
});

test.each([
  [
    "headers that are too large",
    `GET / HTTP/1.1\r\nx: ${"a".repeat(20_000)}\r\n\r\n`,
    431,
    undefined,
  ],
  ["what is no HTTP", "hello\r\n\r\n", 400, undefined],
  ["a tunnel", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", 405, "CONNECT"],
  [
    "a body that is too large",
    `POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: ${2 * mebibyte}\r\n\r\n`,
    413,
    "POST",
  ],
])("logs a line for %s as well, with the known fields", async (_name, text, status, method) => {
  const served = await serving();
  await rawClient(served.port, text);

  const [line] = await ended(served);
  expect([line?.["status"], line?.["method"]]).toEqual([status, method]);
  expect(line).toMatchObject({ bytes: expect.any(Number), coldStart: true });
  expect(line).not.toHaveProperty("aborted");
});

test("logs a line for a refused upgrade, and none for an accepted one", async () => {
  const served = await serving({
    upgrade: (_request, socket) => void socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
  });
  const upgrade = (host: string) =>
    `GET /ws HTTP/1.1\r\n${host}connection: upgrade\r\nupgrade: x\r\n\r\n`;
  const taken = await rawClient(served.port, upgrade("host: x\r\n"));
  await taken.closed;
  await rawClient(served.port, upgrade(""));

  expect(await ended(served)).toMatchObject([{ method: "GET", status: 400 }]);
});

test("a client that leaves amid a body ends its request at once, even behind a complete one", async () => {
  const served = await serving();
  const client = await rawClient(
    served.port,
    bytesHead() + "x".repeat(70_000) + bytesHead() + "x".repeat(35_000),
  );
  client.socket.end();

  const lines = await ended(served, 2);
  expect(lines).toMatchObject([
    { route: "/size", status: 200 },
    { route: "/size", status: 400 },
  ]);
  expect(served.bodies.heldBytes).toBe(0);
});

test("a client that leaves amid a body ends its request at once, even before the body is read", async () => {
  const served = await serving();
  const hasFailed = () =>
    [...served.connections.known.values()].some(({ bodyFailure }) => bodyFailure !== undefined);
  const authenticate = async () => {
    await expect.poll(hasFailed).toBe(true);
    return { user: undefined };
  };
  Object.assign(served.runtime, { authenticator: { authenticate } });
  const client = await rawClient(
    served.port,
    bytesHead("authorization: Bearer a\r\n") + "x".repeat(35_000),
  );
  client.socket.end();

  expect(await ended(served)).toMatchObject([{ route: "/size", status: 400 }]);
  expect(served.bodies.heldBytes).toBe(0);
});

test("a refused client that has already gone is logged as aborted", async () => {
  const served = await serving();
  const { http } = served;
  http.prependListener("connect", (_message, socket) => void socket.destroy());
  await rawClient(served.port, "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n");

  expect(await ended(served)).toMatchObject([
    { method: "CONNECT", status: 405, bytes: 0, aborted: true },
  ]);
});

test("health polls have no line and do not count as the first request; other requests to health have one", async () => {
  const served = await serving();
  for (const path of ["/health/live", "/health/ready", "/text"])
    await (await fetch(`http://127.0.0.1:${served.port}${path}`)).text();
  served.runtime.lifecycle.drain();
  expect((await fetch(`http://127.0.0.1:${served.port}/health/ready`)).status).toBe(503);
  expect(
    (await fetch(`http://127.0.0.1:${served.port}/health/ready`, { method: "POST" })).status,
  ).toBe(405);

  expect(await ended(served, 2)).toMatchObject([
    { route: "/text", coldStart: true },
    { status: 405, coldStart: false },
  ]);
});

test("over HTTP/2, logs a line for every stream, with its bytes", async () => {
  const served = await serving({ tls });
  const session = await http2Client(served.port);
  for (const [path, method] of [["/text"], ["/text", "HEAD"], ["/large"]] as const) {
    await once(session.request({ ":path": path, ":method": method ?? "GET" }).resume(), "close");
  }

  const [text, head, large] = await ended(served, 3);
  expect(text).toEqual({
    ...whole,
    handler: "bounded.text.show",
    route: "/text",
    status: 200,
    bytes: 15,
  });
  expect([head, large]).toMatchObject([
    { method: "HEAD", bytes: 0, coldStart: false },
    { bytes: 200_000 },
  ]);
  expect(JSON.stringify([head, large])).not.toContain("aborted");
});

test.each([
  ["a short body", "/size", 9],
  ["a long one", "/echo", 100_000],
  ["an error", "/failing", 9],
])(
  "over HTTP/2, a request that sends a body and gets %s is not logged as aborted",
  async (_what, path, bytes) => {
    const served = await serving({ tls });
    const session = await http2Client(served.port);
    const stream = session.request({
      ":path": path,
      ":method": "POST",
      "content-type": "application/octet-stream",
    });
    stream.end("x".repeat(bytes));
    let got = 0;
    stream.on("data", (chunk: Buffer) => {
      got += chunk.byteLength;
    });
    await once(stream, "close");

    const [line] = await ended(served);
    expect(line).toMatchObject({ method: "POST", route: path, bytes: got });
    expect(line).not.toHaveProperty("aborted");
  },
);

test("logs a reset HTTP/2 stream as aborted, with the bytes sent", async () => {
  const served = await serving({ tls });
  const session = await http2Client(served.port);
  const gone = session.request({ ":path": "/held/a" }).on("error", () => {});
  await expect.poll(() => served.probe.running).toBe(1);
  gone.close(8);
  await once(gone, "close");
  await expect.poll(() => requestsOf(served).size).toBe(0);
  served.probe.letGo();
  expect(await ended(served)).toMatchObject([
    { route: "/held/:name", status: 200, bytes: 0, aborted: true },
  ]);

  const big = session.request({ ":path": "/big" }).on("error", () => {});
  await once(big, "data");
  big.close(8);
  const [, line] = await ended(served, 2);
  expect(line).toMatchObject({ route: "/big", status: 200, aborted: true });
  expect(line?.["bytes"]).toBeLessThan(bigBytes);
});

test("over HTTP/2, cancels a stream that waits for its source as soon as its client leaves", async () => {
  const served = await serving({ tls });
  const session = await http2Client(served.port);
  const stream = session.request({ ":path": "/halting" });
  stream.on("error", () => {});
  await once(stream, "data");
  stream.close(8);

  await expect.poll(() => served.probe.cancelled).toBe(1);
  expect(await ended(served)).toMatchObject([{ route: "/halting", aborted: true }]);
});

test("without request lines, logs none and answers as before", async () => {
  const served = await serveBounded({}, { bodyBytes: mebibyte }, { requests: false });
  expect(served.runtime.observer).toBeUndefined();
  for (const [path, bytes] of [
    ["/text", 15],
    ["/large", 200_000],
    ["/mebibyte", mebibyte],
  ] as const) {
    expect(
      (await (await fetch(`http://127.0.0.1:${served.port}${path}`)).arrayBuffer()).byteLength,
    ).toBe(bytes);
  }
  const tunnel = await rawClient(served.port, "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n");
  await expect.poll(() => tunnel.got()).toContain("405");
  expect(served.said("request.completed")).toEqual([]);
});
