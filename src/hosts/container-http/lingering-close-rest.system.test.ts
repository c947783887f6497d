import { Agent, request } from "node:http";
import { afterEach, expect, test } from "vitest";
import {
  closeAll,
  mebibyte,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";

afterEach(closeAll);

const post = (path: string, head: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n${body}`;
const sized = (path: string, body: string) => post(path, `content-length: ${body.length}`, body);
const chunked = (path: string, body: string) =>
  post(path, "transfer-encoding: chunked", `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
const next = "GET /text HTTP/1.1\r\nhost: x\r\n\r\n";
const statuses = (got: string) =>
  [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

test.each([
  ["two bytes in the same packet", sized("/guarded", "{}"), 401],
  ["in a chunk", chunked("/guarded", "{}"), 401],
  ["64 KiB", sized("/guarded", "x".repeat(65_536)), 401],
  ["64 KiB in a chunk", chunked("/guarded", "x".repeat(65_000)), 401],
  ["over a small limit", sized("/size", "x".repeat(2_000)), 413],
  ["over a small limit, in a chunk", chunked("/size", "x".repeat(2_000)), 413],
  ["where no route is", sized("/nowhere", "{}"), 404],
])(
  "reads a small body that no handler uses, and answers the request after it: %s",
  async (_name, text, status) => {
    const { port, bodies } = await serveBounded(
      {},
      { bodyBytes: status === 413 ? 1_000 : mebibyte },
    );
    const client = await rawClient(port, text + next);
    await expect.poll(() => statuses(client.got())).toEqual([status, 200]);
    client.socket.write(next);
    await expect.poll(() => statuses(client.got())).toEqual([status, 200, 200]);

    expect(client.got()).not.toMatch(/connection: close/i);
    expect(bodies.heldBytes).toBe(0);
  },
);

test("reads an unused body over TLS too, when it comes late and earlier requests are unanswered", async () => {
  const { port, probe } = await serveBounded({ tls });
  const client = await rawClient(
    port,
    `GET /held/a HTTP/1.1\r\nhost: x\r\n\r\n${post("/guarded", "content-length: 4", "ab")}`,
    "http/1.1",
  );
  await expect.poll(() => probe.began).toBe(1);
  probe.letGo();
  await expect.poll(() => statuses(client.got())).toEqual([200, 401]);
  client.socket.write(`cd${next}`);

  await expect.poll(() => statuses(client.got())).toEqual([200, 401, 200]);
});

test("Node's client reuses its connection after an early refusal", async () => {
  const { port } = await serveBounded();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  for (let times = 0; times < 5; times++) {
    const status = await new Promise((resolve, reject) => {
      const asking = request(
        { port, host: "127.0.0.1", method: "POST", path: "/guarded", agent },
        (response) => {
          response.resume().once("end", () => resolve(response.statusCode));
        },
      );
      asking.once("socket", (socket) => sockets.add(socket)).once("error", reject);
      asking.end("x".repeat(10_000));
    });
    expect(status).toBe(401);
  }
  agent.destroy();

  expect(sockets.size).toBe(1);
});

test("cuts off a client that stops sending its body", async () => {
  const { port, connections } = await serveBounded({
    headersTimeoutMs: 4_000,
    requestTimeoutMs: 4_000,
  });
  const client = await rawClient(port, post("/guarded", "content-length: 2", "{"));
  await client.closed;

  expect(statuses(client.got())).toEqual([401]);
  await expect.poll(() => connections.known.size).toBe(0);
});

test("cuts off a client that sends its body a byte at a time", async () => {
  const { port } = await serveBounded({ headersTimeoutMs: 4_000, requestTimeoutMs: 4_000 });
  const client = await rawClient(port, post("/guarded", "content-length: 60000", "x"));
  const sending = setInterval(() => client.socket.write("x"), 20);
  await client.closed.finally(() => clearInterval(sending));

  expect(statuses(client.got())).toEqual([401]);
});

test("closes the connection of a client that sends too much in chunks, and executes nothing after it", async () => {
  const { port, probe } = await serveBounded();
  const client = await rawClient(port, post("/guarded", "transfer-encoding: chunked", ""));
  await expect.poll(() => statuses(client.got())).toEqual([401]);
  const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
  client.socket.write(`${chunk}${chunk}0\r\n\r\nGET /held/a HTTP/1.1\r\nhost: x\r\n\r\n`);
  await client.closed;

  expect([statuses(client.got()), probe.began]).toEqual([[401], 0]);
});

test("closes the connection of a client that never got 100 Continue", async () => {
  const { port } = await serveBounded();
  const client = await rawClient(
    port,
    post("/guarded", "content-length: 2\r\nexpect: 100-continue", ""),
  );
  await client.closed;

  expect(client.got()).toMatch(/^HTTP\/1\.1 401 [\s\S]*connection: close/i);
});

test("garbage instead of the rest of a body ends the connection without a second response", async () => {
  const { port } = await serveBounded();
  const client = await rawClient(port, post("/guarded", "transfer-encoding: chunked", ""));
  await expect.poll(() => statuses(client.got())).toEqual([401]);
  client.socket.write("ZZ\r\n");
  await client.closed;

  expect(statuses(client.got())).toEqual([401]);
});
