import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  cert,
  closeAll,
  http2Client,
  mebibyte,
  type RawClient,
  rawClient,
  serveBounded,
  tls,
} from "../../../test/fixtures/bounded-server.ts";

afterEach(closeAll);

const run = promisify(execFile);
const large = randomBytes(10 * mebibyte);
let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-uploads-"));
  writeFileSync(join(directory, "large"), large);
  writeFileSync(join(directory, "cert"), cert);
});
afterAll(() => rmSync(directory, { recursive: true, maxRetries: 20 }));

const head = (path: string, more = `content-length: ${large.byteLength}`) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\n${more}\r\n\r\n`;

/** Sends so much, and reads only then what came. */
async function sendThenRead(
  client: RawClient,
  bytes: Buffer,
  pieceBytes = bytes.byteLength,
  pauseMs = 0,
): Promise<void> {
  client.socket.pause();
  for (let from = 0; from < bytes.byteLength; from += pieceBytes) {
    await new Promise((resolve) =>
      client.socket.write(bytes.subarray(from, from + pieceBytes), resolve),
    );
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  client.socket.resume();
}

test.each([
  ["without a token", "/guarded", 401],
  ["over the limit", "/size", 413],
  ["where no route is", "/nowhere", 404],
])(
  "a client that reads only after sending its whole upload gets the refusal: %s",
  async (_name, path, status) => {
    const bodyBytes = path === "/size" ? mebibyte : large.byteLength;
    const { port, bodies, connections } = await serveBounded({}, { bodyBytes });
    const client = await rawClient(port, head(path));
    await sendThenRead(client, large);
    await client.closed;

    expect(client.got()).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*connection: close[\\s\\S]*"requestId"`, "i"),
    );
    expect(bodies.heldBytes).toBe(0);
    await expect.poll(() => connections.known.size).toBe(0);
  },
);

test("a slow client and one that exceeds the limit in chunks get the refusal too", async () => {
  const { port } = await serveBounded({}, { bodyBytes: 100_000 });
  const slow = await rawClient(port, head("/guarded", "content-length: 100000"));
  const chunked = await rawClient(port, head("/size", "transfer-encoding: chunked"));
  const chunk = Buffer.concat([
    Buffer.from("100000\r\n"),
    large.subarray(0, mebibyte),
    Buffer.from("\r\n"),
  ]);
  await Promise.all([
    sendThenRead(slow, large.subarray(0, 100_000), 50_000, 600), // longer than until the server says the end
    sendThenRead(
      chunked,
      Buffer.concat([chunk, chunk, chunk, Buffer.from("0\r\n\r\n")]),
      mebibyte,
      20,
    ),
  ]);
  await Promise.all([slow.closed, chunked.closed]);

  expect(slow.got()).toMatch(/^HTTP\/1\.1 401 /);
  expect(chunked.got()).toMatch(/^HTTP\/1\.1 413 /);
});

test.each([
  ["HTTP/1.1", {}, [], "http"],
  [
    "HTTP/1.1 that is told to go on",
    {},
    ["-H", "Expect: 100-continue", "--expect100-timeout", "20"],
    "http",
  ],
  ["HTTP/1.1 that asks nothing, throttled", {}, ["-H", "Expect:", "--limit-rate", "20M"], "http"],
  ["HTTP/1.1 over TLS", { tls }, ["--http1.1"], "https"],
  ["HTTP/2", { tls }, ["--http2"], "https"],
] as const)(
  "curl gets the 413 or 404 of a large upload, over %s",
  async (_name, options, more, scheme) => {
    const { port } = await serveBounded(options);
    const upload = async (path: string) => {
      const file = [
        "--data-binary",
        `@${join(directory, "large")}`,
        "--cacert",
        join(directory, "cert"),
      ];
      const { stdout } = await run("curl", [
        "-sS",
        "-w",
        " %{http_code}",
        ...file,
        ...more,
        `${scheme}://localhost:${port}${path}`,
      ]);
      return stdout;
    };

    expect(await upload("/guarded?x")).toMatch(/"error":"payload_too_large".* 413$/);
    expect(await upload("/nowhere")).toMatch(/"error":"not_found".* 404$/);
  },
);

test("curl gets the 401 of an upload within the limit", async () => {
  const { port } = await serveBounded({}, { bodyBytes: large.byteLength });
  const file = ["--data-binary", `@${join(directory, "large")}`];
  const { stdout } = await run("curl", [
    "-sS",
    "-w",
    " %{http_code}",
    ...file,
    `http://localhost:${port}/guarded`,
  ]);

  expect(stdout).toMatch(/"error":"unauthenticated".* 401$/);
});

test.each([
  ["http", {}, requestHttp],
  ["https", { tls }, requestHttps],
] as const)(
  "Node's %s.request gets the response to a refused large upload",
  async (_name, options, request) => {
    const { port } = await serveBounded(options, { bodyBytes: large.byteLength });
    for (let times = 0; times < 5; times++) {
      const asking = request({
        port,
        host: "localhost",
        method: "POST",
        path: "/guarded",
        ca: cert,
        agent: false,
      });
      asking.end(large);
      const [response] = (await once(asking, "response")) as [IncomingMessage];
      expect(response.statusCode).toBe(401);
      const closed = once(asking, "close"); // an error on the way is none of the answer, and fails it as well
      expect((await response.toArray()).join("")).toContain('"error":"unauthenticated"');
      await closed;
    }
  },
);

test("fetch gets the response to a refused large upload", async () => {
  const { port } = await serveBounded();
  for (let times = 0; times < 5; times++) {
    const response = await fetch(`http://127.0.0.1:${port}/guarded`, {
      method: "POST",
      body: large,
    });
    expect([response.status, await response.json()]).toMatchObject([
      413,
      { error: "payload_too_large" },
    ]);
  }
});

test("over HTTP/2, refuses large uploads without an error, and keeps their session open", async () => {
  const { port, bodies } = await serveBounded({ tls }, { bodyBytes: large.byteLength });
  const session = await http2Client(port, { maxSessionMemory: 1_000 }); // MB; it counts what it has not sent
  for (let times = 0; times < 12; times++) {
    const stream = session.request({ ":method": "POST", ":path": "/guarded" });
    stream.end(large);
    const [headers] = await once(stream, "response");
    expect([headers[":status"], (await stream.toArray()).join("")]).toEqual([
      401,
      expect.stringContaining("unauthenticated"),
    ]);
    expect(stream.rstCode).toBe(0);
  }
  const upload = session.request({ ":method": "POST", ":path": "/size" });
  upload.end(large);

  expect(JSON.parse((await upload.toArray()).join(""))).toMatchObject({ bytes: large.byteLength });
  expect(bodies.heldBytes).toBe(0);
});

test("sends 100 Continue only when it is going to read the body", async () => {
  const { port } = await serveBounded();
  const expecting = (path: string, bytes: number) =>
    rawClient(port, head(path, `content-length: ${bytes}\r\nexpect: 100-continue`));
  const [open, guarded, over, empty] = await Promise.all([
    expecting("/size", 3),
    expecting("/guarded", 3),
    expecting("/size", mebibyte + 1),
    expecting("/size", 0),
  ]);
  await expect.poll(open.got).toBe("HTTP/1.1 100 Continue\r\n\r\n");
  open.socket.write("abc");
  await expect
    .poll(open.got)
    .toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 [\s\S]*"bytes":3/);
  await Promise.all([guarded.closed, over.closed]);
  await expect.poll(empty.got).toMatch(/HTTP\/1\.1 200 [\s\S]*"bytes":0/);

  expect(guarded.got()).toMatch(/^HTTP\/1\.1 401 /);
  expect(over.got()).toMatch(/^HTTP\/1\.1 413 /);
  expect(guarded.got() + over.got()).not.toContain("100 Continue");
});

test("refuses a request without a Host instead of sending 100 Continue", async () => {
  const { port } = await serveBounded();
  const client = await rawClient(
    port,
    "POST /size HTTP/1.1\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n",
  );
  await client.closed;

  expect(client.got()).toMatch(/^HTTP\/1\.1 400 /);
});

test("after a refused large upload, executes no further request and does not answer garbage", async () => {
  const { port, probe } = await serveBounded();
  const bytes = "x".repeat(65_537);
  const client = await rawClient(port, head("/guarded", `content-length: ${bytes.length}`));
  await expect.poll(client.got).toContain("401");
  client.socket.write(`${bytes}GET /held/a HTTP/1.1\r\nhost: x\r\n\r\n`);
  await client.closed;
  const broken = await rawClient(port, head("/guarded", "transfer-encoding: chunked"));
  await expect.poll(broken.got).toContain("401");
  broken.socket.write("ZZ\r\n");
  await broken.closed;

  expect(probe.began).toBe(0);
  expect((client.got() + broken.got()).match(/HTTP\/1\.1/g)).toHaveLength(2);
});

test("reads a refused upload up to a limit of bytes, and no further", async () => {
  const { port } = await serveBounded();
  const client = await rawClient(port, head("/guarded", "transfer-encoding: chunked"));
  const chunk = Buffer.concat([
    Buffer.from("100000\r\n"),
    large.subarray(0, mebibyte),
    Buffer.from("\r\n"),
  ]);
  let sent = 0;
  while (!client.socket.destroyed && sent < 500) {
    await new Promise((resolve) => client.socket.write(chunk, resolve));
    sent += 1;
  }

  expect(client.got()).toMatch(/^HTTP\/1\.1 401 /);
  expect(sent).toBeGreaterThan(60);
  expect(sent).toBeLessThan(500);
});

test("draining: gives a refused upload less time", async () => {
  const { port, runtime, connections } = await serveBounded({}, { bodyBytes: large.byteLength });
  const before = await rawClient(port, head("/guarded"));
  await expect.poll(before.got).toContain("401");
  const during = await rawClient(port);
  const sending = setInterval(() => {
    for (const { socket } of [before, during]) socket.write("x");
  }, 10);
  runtime.lifecycle.drain();
  during.socket.write(head("/guarded"));
  await Promise.all([before.closed, during.closed]).finally(() => clearInterval(sending));

  expect(during.got()).toMatch(/^HTTP\/1\.1 401 /);
  await expect.poll(() => connections.known.size).toBe(0);
});
