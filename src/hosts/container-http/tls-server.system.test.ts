import { type EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
} from "node:http2";
import { get as getHttps } from "node:https";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, expect, test } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { defineFeature } from "../../app/features/feature.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { ShutdownTimes } from "../../base/process/shutdown-limits.ts";
import { reply } from "../../parts/http/reply.ts";
import { beginLife } from "../container/process-life.ts";
import type { HttpServerOptions } from "./http-options.ts";
import { type ContainerServer, createHttpServer } from "./http-server.ts";

const pem = (name: string) =>
  readFileSync(
    new URL(`../../../test/fixtures/tls/localhost-${name}.pem`, import.meta.url),
    "utf8",
  );
const [key, cert] = [pem("key"), pem("cert")];

const closers: (() => void)[] = [];
const warnings: Error[] = [];
const onWarning = (warning: Error) => void warnings.push(warning);
process.on("warning", onWarning);
afterEach(() => {
  for (const close of closers.splice(0)) close();
  expect(warnings).toEqual([]);
});

const text = { headers: { "content-type": "text/plain" } };
const held = new Map<string, () => void>();
const probe = defineFeature("probe", (r) => {
  const everyone = access.everyone;
  r.query("text.show", {
    route: "GET /text",
    access: everyone,
    handler: async () => reply("text", text),
  });
  r.query("view.show", {
    route: "GET /view/:id",
    access: everyone,
    handler: async (ctx) => ({
      ip: ctx.request?.ip,
      path: ctx.request?.path,
      headers: { ...ctx.request?.headers },
    }),
  });
  r.query("text.held", {
    route: "GET /held/:name",
    access: everyone,
    handler: async (ctx, input) => {
      const { name } = input as { name: string };
      await new Promise<void>((resolve) => {
        held.set(name, resolve);
        ctx.log.info("held.began", { name });
      });
      return reply("held", text);
    },
  });
  r.query("time.wait", {
    route: "GET /wait",
    access: everyone,
    handler: (ctx) => {
      ctx.log.info("wait.began");
      return new Promise((_, reject) =>
        ctx.signal?.addEventListener("abort", () => reject(ctx.signal?.reason)),
      );
    },
  });
  r.query("time.stick", {
    route: "GET /stick",
    access: everyone,
    handler: (ctx) => {
      ctx.log.info("stick.began");
      return new Promise(() => {});
    },
  });
  r.query("stream.show", {
    route: "GET /stream",
    access: everyone,
    handler: async () => reply(new Response("streamed").body, text),
  });
  r.query("stream.failing", {
    route: "GET /failing",
    access: everyone,
    handler: async () => {
      let pulls = 0;
      return reply(
        new ReadableStream({
          pull: (controller) => {
            pulls += 1;
            if (pulls === 1) controller.enqueue(new TextEncoder().encode("begun"));
            else controller.error(new Error("the source failed"));
          },
        }),
        text,
      );
    },
  });
  r.query("hop.show", {
    route: "GET /hop",
    access: everyone,
    handler: async () =>
      reply("hop", {
        headers: { ...text.headers, "keep-alive": "timeout=5", upgrade: "x", "x-own": "1" },
      }),
  });
  r.query("nothing.show", {
    route: "GET /nothing",
    access: everyone,
    handler: async () => undefined,
  });
  r.write("cookie.set", {
    route: "POST /cookie",
    access: everyone,
    handler: async () => reply({}, { cookies: { a: { value: "1" }, b: { value: "2" } } }),
  });
  r.write("body.size", {
    route: "POST /size",
    access: everyone,
    body: "bytes",
    handler: async (ctx) => ({ bytes: ctx.request?.rawBody.length }),
  });
});

async function serving(options: HttpServerOptions = {}) {
  const server = buildServer({ features: [probe], limits: { bodyBytes: 1_000 } });
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: { LOG_LEVEL: "debug" },
    write: (line) => void logs.push(JSON.parse(line)),
    openAdapters: async () => unusedAdapters,
  });
  const container = createHttpServer(runtime, { tls: { key, cert }, ...options });
  const { http, drain } = container;
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  closers.push(() => {
    drain.cut();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return { container, runtime, http, logs, port, client: () => clientOf(port) };
}

type Served = Awaited<ReturnType<typeof serving>>;
const hears = ({ logs }: Served, msg: string, count = 1) =>
  expect
    .poll(() => logs.filter((line) => line["msg"] === msg).length)
    .toBeGreaterThanOrEqual(count);

/** Resolves when it is closed, in whatever way. */
const closed = (one: EventEmitter) =>
  new Promise<void>((resolve) => one.once("close", () => resolve()));

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** The code of the reset, 0 where there was none. */
  readonly reset: number;
}

/** What comes of a stream, whatever that is. */
function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve) => {
    let status: number | undefined;
    let headers = {};
    let body = "";
    stream.on("response", (received) => {
      status = received[":status"];
      headers = received;
    });
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => {
      body += chunk;
    });
    stream.on("error", () => {});
    stream.on("close", () => resolve({ status, headers, body, reset: stream.rstCode }));
  });
}

async function clientOf(port: number) {
  const session: ClientHttp2Session = connectHttp2(`https://localhost:${port}`, { ca: cert });
  session.on("error", () => {});
  const goaways: number[] = [];
  session.on("goaway", (_code, last) => void goaways.push(last));
  closers.push(() => session.destroy());
  await once(session, "connect");
  const open = (headers: OutgoingHttpHeaders, options = {}) => session.request(headers, options);
  return {
    session,
    goaways,
    open,
    get: (path: string, headers: OutgoingHttpHeaders = {}) =>
      answerOf(open({ ":path": path, ...headers }, { endStream: true })),
    send: (path: string, body: string, headers: OutgoingHttpHeaders = {}) => {
      const stream = open({ ":method": "POST", ":path": path, ...headers });
      stream.end(body);
      return answerOf(stream);
    },
  };
}

/** Begins a shutdown: resolves to its exit code. */
function ended(runtime: Runtime, container: ContainerServer, times: ShutdownTimes): Promise<0 | 1> {
  const life = beginLife(runtime, times);
  life.server = container;
  life.tell({ type: "started" });
  life.tell({ type: "terminate" });
  return life.ended;
}

test("HTTP/2 sends text, streams, cookies and empty responses as HTTP/1.1 does", async () => {
  const { client } = await serving();
  const { get, send } = await client();

  expect(await get("/text", { "x-request-id": "r1" })).toMatchObject({
    status: 200,
    body: "text",
    headers: { "x-request-id": "r1", "content-length": "4" },
    reset: 0,
  });
  expect(await get("/stream")).toMatchObject({ status: 200, body: "streamed" });
  expect(await get("/nothing")).toMatchObject({ status: 204, body: "" });
  expect(await get("/text", { ":method": "HEAD" })).toMatchObject({
    status: 200,
    body: "",
    headers: { "content-length": "4" },
  });
  expect((await send("/cookie", "")).headers["set-cookie"]).toHaveLength(2);
});

test("serves HTTP/1.1 over the same port to clients without HTTP/2", async () => {
  const { port } = await serving();
  const [response] = await once(
    getHttps({ port, host: "localhost", path: "/view/1", ca: cert, agent: false }),
    "response",
  );
  const view = JSON.parse((await response.toArray()).join(""));

  expect([response.statusCode, response.httpVersion]).toEqual([200, "1.1"]);
  expect(view).toMatchObject({
    ip: expect.stringMatching(/127\.0\.0\.1$/),
    path: "/view/1",
    headers: { host: `localhost:${port}` },
  });
});

test("a handler sees the same host, address, path and headers as over HTTP/1.1, and no pseudo-headers", async () => {
  const { client, port } = await serving();
  const { get } = await client();
  const view = JSON.parse(
    (await get("/view/a%20b?c=1", { cookie: ["a=1", "b=2"], "x-many": ["1", "2"] })).body,
  );

  expect(view).toMatchObject({
    ip: expect.stringMatching(/127\.0\.0\.1$/),
    path: "/view/a%20b",
    headers: { host: `localhost:${port}`, cookie: "a=1; b=2", "x-many": "1, 2" },
  });
  expect(Object.keys(view.headers).filter((name) => name.startsWith(":"))).toEqual([]);
});

test("leaves out headers that HTTP/2 does not allow, even while draining", async () => {
  const { client, runtime } = await serving();
  const { get } = await client();
  runtime.lifecycle.drain();
  const { status, headers } = await get("/hop");

  expect([status, headers["x-own"]]).toEqual([200, "1"]);
  expect(
    Object.keys(headers).filter((name) => ["connection", "keep-alive", "upgrade"].includes(name)),
  ).toEqual([]);
});

test("receives a body whole, and answers 413 to one over the limit, announced or not", async () => {
  const { client } = await serving();
  const { send, get } = await client();

  expect(JSON.parse((await send("/size", "abc")).body)).toEqual({ bytes: 3 });
  expect(JSON.parse((await send("/size", "abc", { expect: "100-continue" })).body)).toEqual({
    bytes: 3,
  });
  expect(JSON.parse((await send("/size", "")).body)).toEqual({ bytes: 0 });
  expect(await send("/size", "x".repeat(1_001), { "content-length": 1_001 })).toMatchObject({
    status: 413,
  });
  expect(JSON.parse((await send("/size", "x".repeat(100_000))).body)).toMatchObject({
    error: "payload_too_large",
  });
  expect((await get("/size", { ":method": "POST" })).status).toBe(200);
});

test("ends an upload that never finishes, even on an unknown route", async () => {
  const { client } = await serving();
  const { open } = await client();
  for (const [path, status] of [
    ["/size", 413],
    ["/nowhere", 404],
  ] as const) {
    const stream = open({ ":method": "POST", ":path": path });
    const upload = setInterval(() => stream.write("x".repeat(250)), 1);
    expect(await answerOf(stream).finally(() => clearInterval(upload))).toMatchObject({
      status,
      reset: 0,
    });
  }
});

test.each<[string, OutgoingHttpHeaders, number]>([
  ["a tunnel", { ":method": "CONNECT", ":authority": "a:1" }, 405],
  ["an expectation that nobody meets", { ":path": "/text", expect: "weird" }, 417],
  ["headers that are too large", { ":path": "/text", "x-large": "x".repeat(6_000) }, 431],
  ["two hosts", { ":path": "/text", ":authority": "a", host: "b" }, 400],
  ["two hosts in one", { ":path": "/text", ":authority": "a,b" }, 400],
  ["no route", { ":path": "/nowhere" }, 404],
])(
  "refuses %s under the request's own ID and in the uniform body",
  async (_name, headers, status) => {
    const { client } = await serving({ maxHeaderBytes: 4_096 });
    const { open, session } = await client();
    const answer = await answerOf(open({ "x-request-id": "r1", ...headers }, { endStream: true }));

    expect(answer).toMatchObject({ status, headers: { "x-request-id": "r1" } });
    expect(JSON.parse(answer.body)).toMatchObject({ requestId: "r1" });
    expect(session.closed).toBe(false);
  },
);

test("takes the host from :authority or Host, even when both name the same one", async () => {
  const { get } = await (await serving()).client();
  const names = [
    { host: "x" },
    { ":authority": "x" },
    { ":authority": "X.example:443", host: "x.example" },
  ];

  for (const headers of [...names, { ":authority": "[::1]:8443" }])
    expect((await get("/text", headers)).status).toBe(200);
  for (const authority of ["u@x", "a b", "a/b", ""]) {
    expect(await get("/text", { ":authority": authority })).toMatchObject({
      status: undefined,
      reset: 1,
    });
  }
});

test("OPTIONS * lists what the whole server allows", async () => {
  const { open } = await (await serving()).client();
  const answer = await answerOf(
    open({ ":method": "OPTIONS", ":path": "*", "x-request-id": "r1" }, { endStream: true }),
  );

  expect(answer).toMatchObject({
    status: 204,
    headers: { allow: "DELETE, GET, HEAD, OPTIONS, POST, PUT", "x-request-id": "r1" },
  });
});

test("refuses two credentials under the request's own ID", async () => {
  const { port } = await serving();
  const socket = connectTls({ port, host: "localhost", ca: cert, ALPNProtocols: ["h2"] });
  closers.push(() => socket.destroy());
  const got: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => got.push(chunk));
  // Node's own client does not send them: GET / of the host x with two fields of the name authorization.
  const field = (name: string, value: string) =>
    Buffer.concat([
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]);
  const credentials = [
    field("authorization", "Bearer a"),
    field("authorization", "Bearer b"),
    field("accept", "*/*"),
  ];
  const head = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x78]), ...credentials]);
  socket.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      frame(4, 0, 0),
      frame(4, 1, 0),
      frame(1, 5, 1, head),
    ]),
  );

  await expect
    .poll(() => Buffer.concat(got).toString("latin1"))
    .toMatch(/"error":"malformed_request".*"requestId":"/);
});

test("resets a stream whose headers are far over the limit, and keeps the connection", async () => {
  const { client } = await serving({ maxHeaderBytes: 4_096 });
  const { get } = await client();

  expect((await get("/text", { ":authority": undefined, host: "x" })).status).toBe(200); // by now it knows the limit
  expect((await get("/text", { "x-large": "x".repeat(20_000) })).status).toBeUndefined();
  expect((await get("/text")).status).toBe(200);
});

test("answers 408 to a body that takes too long", async () => {
  const { client } = await serving({ requestTimeoutMs: 4_000 });
  const { open } = await client();
  const stream = open({ ":method": "POST", ":path": "/size" });
  stream.write("abc");

  expect(await answerOf(stream)).toMatchObject({ status: 408 });
});

test("a client that resets its stream aborts the handler, and its session goes on", async () => {
  const served = await serving();
  const { open, get } = await served.client();
  const stream = open({ ":path": "/wait" });
  const answer = answerOf(stream);
  await hears(served, "wait.began");
  stream.close(8);

  expect((await answer).status).toBeUndefined();
  await hears(served, "request.aborted");
  expect((await get("/text")).status).toBe(200);
});

test("a session that ends amid a body counts as a malformed request, and later clients are served", async () => {
  const served = await serving();
  const { open, session } = await served.client();
  const stream = open({ ":method": "POST", ":path": "/size" });
  stream.on("error", () => {});
  stream.write("abc");
  await expect.poll(() => served.container.drain.underWay().count).toBe(1);
  session.destroy();

  await expect
    .poll(() => served.logs)
    .toContainEqual(expect.objectContaining({ msg: "request.failed", error: "malformed_request" }));
  expect((await (await served.client()).get("/text")).status).toBe(200);
});

test("resets a stream that breaks, and logs it", async () => {
  const served = await serving();
  const { get } = await served.client();

  // Node 22 and 26 drop its head with the stream; Node 24 sends it first.
  const head = process.versions.node.startsWith("24.") ? { status: 200 } : {};
  expect(await get("/failing")).toMatchObject({ ...head, reset: 2 });
  await expect
    .poll(() => served.logs)
    .toContainEqual(
      expect.objectContaining({ msg: "response.cut_off", message: "the source failed" }),
    );
});

test("closes an idle session in time, but not a busy one", async () => {
  const served = await serving({ keepAliveTimeoutMs: 4_000 });
  const busy = await served.client();
  const waiting = busy.get("/held/busy");
  await hears(served, "held.began");
  // The last to come: when its time is over, that of the other was before.
  const idle = await served.client();
  await closed(idle.session);
  held.get("busy")?.();

  expect(await waiting).toMatchObject({ status: 200, body: "held" });
});

test("sends away a client that opens and resets streams endlessly, and serves others", async () => {
  const served = await serving();
  const socket = connectTls({
    port: served.port,
    host: "localhost",
    ca: cert,
    ALPNProtocols: ["h2"],
  });
  socket.on("error", () => {});
  closers.push(() => socket.destroy());
  const sentAway = new Promise<void>((resolve) => {
    // Node 24 closes the connection, Node 22 says GOAWAY and reads no more.
    socket.on("close", () => resolve());
    let rest = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let length = lengthOf(rest); rest.length >= length; length = lengthOf(rest)) {
        if (rest[3] === 7) resolve(); // GOAWAY
        rest = rest.subarray(length);
      }
    });
  });
  // Node's own client does not do it: GET / of the host x, and its reset at once, again and again.
  socket.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      frame(4, 0, 0),
      frame(4, 1, 0),
    ]),
  );
  let id = 1;
  const flood = setInterval(() => {
    for (const end = id + 200; id < end && socket.writable; id += 2) {
      socket.write(frame(1, 5, id, Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x78])));
      socket.write(frame(3, 0, id, Buffer.from([0, 0, 0, 8])));
    }
  }, 10);
  await sentAway.finally(() => clearInterval(flood));

  expect((await (await served.client()).get("/text")).status).toBe(200);
});

/** How long the first frame is, its head included. */
function lengthOf(bytes: Buffer): number {
  return bytes.length < 9 ? Number.POSITIVE_INFINITY : 9 + bytes.readUIntBE(0, 3);
}

/** A frame of HTTP/2 (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

test("drops failed TLS handshakes, and logs them at debug level", async () => {
  const served = await serving();
  const plain = connectTcp(served.port, "127.0.0.1");
  plain.on("error", () => {});
  plain.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await closed(plain);
  const foreign = connectTls({
    port: served.port,
    host: "127.0.0.1",
    ca: cert,
    servername: "localhost",
    ALPNProtocols: ["spdy"],
  });
  await expect(once(foreign, "close")).rejects.toThrow("no application protocol");

  await hears(served, "tls.handshake_failed", 2);
  expect(served.logs.filter(({ level }) => level !== "debug")).toEqual([]);
});

test("draining: sends GOAWAY to a busy session, answers what is in flight, and closes with the last response", async () => {
  const served = await serving();
  const { get, goaways, session } = await served.client();
  const [first, second] = [get("/held/1"), get("/held/2")];
  await hears(served, "held.began", 2);
  const gone = closed(session);
  served.runtime.lifecycle.drain();
  // First nothing is excluded; when that is known, what came so far: streams 1 and 3.
  await expect.poll(() => goaways).toEqual([2 ** 31 - 1, 3]);
  held.get("1")?.();
  expect(await first).toMatchObject({ status: 200, body: "held", reset: 0 });
  held.get("2")?.();
  expect(await second).toMatchObject({ status: 200, body: "held", reset: 0 });
  await gone;
});

test("draining: serves idle and new sessions once more, with all requests sent at once, and closes them", async () => {
  const served = await serving();
  const idle = await served.client();
  served.runtime.lifecycle.drain();
  const late = await served.client();
  for (const { get, session } of [idle, late]) {
    const gone = closed(session);
    const answers = await Promise.all([get("/text"), get("/stream"), get("/text")]);
    expect(answers.map(({ status, body, reset }) => [status, body, reset])).toEqual([
      [200, "text", 0],
      [200, "streamed", 0],
      [200, "text", 0],
    ]);
    await gone;
  }
});

test("draining: a session that breaks at that moment breaks nothing else", async () => {
  const served = await serving();
  const sockets: Socket[] = [];
  served.http.on("secureConnection", (socket: Socket) => void sockets.push(socket));
  const { get } = await served.client();
  const stuck = get("/stick");
  await hears(served, "stick.began");
  const [connection] = sockets.map((socket) => served.container.connections.of(socket));
  connection?.session?.destroy();
  expect(connection?.requests.size).toBe(1); // of its end they hear later
  served.runtime.lifecycle.drain();

  expect((await stuck).status).toBeUndefined();
  expect(await (await served.client()).get("/text")).toMatchObject({ status: 200 });
});

test("draining: a client that reconnects on GOAWAY loses no request", async () => {
  const served = await serving();
  let client = await served.client();
  const answers: Promise<Answer>[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      if (client.session.closed || client.goaways.length > 0) client = await served.client();
      answers.push(client.get("/text"));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  await expect.poll(() => answers.length).toBeGreaterThan(50);
  served.runtime.lifecycle.drain();
  const before = answers.length;
  await expect.poll(() => answers.length).toBeGreaterThan(before + 100);
  isOver = true;
  await asking;

  // What a client had not sent when it heard of it is refused, which says that it may be sent again.
  const outcomes = await Promise.all(answers);
  expect(outcomes.filter(({ status, reset }) => status !== 200 && reset !== 7)).toEqual([]);
});

test("a drain waits for streams in flight, but not for idle sessions or unfinished handshakes", async () => {
  const served = await serving({ headersTimeoutMs: 60_000 });
  const idle = await served.client();
  await idle.get("/text");
  const busy = await served.client();
  const waiting = busy.get("/held/3");
  await hears(served, "held.began");
  const silent = connectTcp(served.port, "127.0.0.1");
  silent.on("error", () => {});
  await once(silent, "connect");
  const over = [closed(idle.session), closed(silent)];
  const drained = ended(served.runtime, served.container, {
    lingerMs: 0,
    drainMs: 30_000,
    totalMs: 60_000,
  });
  await Promise.all(over);
  held.get("3")?.();

  expect(await waiting).toMatchObject({ status: 200, body: "held" });
  expect(await drained).toBe(0);
});

test("a drain waits for a handler whose stream was reset, or whose session has ended", async () => {
  const served = await serving();
  const { drain, connections } = served.container;
  const [resetting, leaving] = [await served.client(), await served.client()];
  const reset = resetting.open({ ":path": "/held/4" });
  const resetAnswer = answerOf(reset);
  const left = answerOf(leaving.open({ ":path": "/held/5" }));
  await hears(served, "held.began", 2);
  reset.close(8);
  leaving.session.destroy();
  await Promise.all([resetAnswer, left]);
  await expect
    .poll(() => [...connections.known.values()].map(({ requests }) => requests.size))
    .toEqual([0]);
  expect(drain.underWay()).toMatchObject({ count: 2, upgraded: 0 });
  expect(drain.underWay().requests.sort()).toEqual(["GET /held/4", "GET /held/5"]);
  const listenerClosed = closed(served.http);
  const drained = ended(served.runtime, served.container, {
    lingerMs: 0,
    drainMs: 30_000,
    totalMs: 60_000,
  });
  await listenerClosed;
  expect(served.runtime.lifecycle.state).toBe("in-flight-drain");
  held.get("4")?.();
  await expect.poll(() => drain.underWay().requests).toEqual(["GET /held/5"]);
  expect(served.runtime.lifecycle.state).toBe("in-flight-drain");
  held.get("5")?.();

  expect(await drained).toBe(0);
});

test("over TLS too, closes idle HTTP/1.1 connections with the listener", async () => {
  const served = await serving();
  const idle = connectTls({
    port: served.port,
    host: "localhost",
    ca: cert,
    ALPNProtocols: ["http/1.1"],
  });
  idle.on("error", () => {});
  idle.write("GET /text HTTP/1.1\r\nhost: x\r\n\r\n");
  await once(idle, "data");
  const unused = connectTls({
    port: served.port,
    host: "localhost",
    ca: cert,
    ALPNProtocols: ["http/1.1"],
  });
  await once(unused, "secureConnect");
  unused.resume();
  idle.resume();
  const gone = [closed(idle), closed(unused)];

  expect(
    await ended(served.runtime, served.container, {
      lingerMs: 0,
      drainMs: 30_000,
      totalMs: 60_000,
    }),
  ).toBe(0);
  await Promise.all(gone);
  expect(served.logs.filter(({ msg }) => msg === "request.failed")).toEqual([]);
});

test("answers 504 to an incomplete body, and cuts off and names a stuck stream", async () => {
  const served = await serving();
  const { open, get } = await served.client();
  const upload = open({ ":method": "POST", ":path": "/size" });
  upload.write("abc");
  const half = answerOf(upload);
  const stuck = get("/stick");
  await hears(served, "stick.began");
  const silent = connectTcp(served.port, "127.0.0.1");
  silent.on("error", () => {});
  await once(silent, "connect");

  expect(
    await ended(served.runtime, served.container, { lingerMs: 0, drainMs: 6_000, totalMs: 60_000 }),
  ).toBe(1);
  expect((await half).status).toBe(504);
  expect((await stuck).status).toBeUndefined();
  expect(served.logs).toContainEqual(
    expect.objectContaining({
      msg: "shutdown.requests_cut_off",
      requests: ["GET /stick"],
      count: 1,
      upgraded: 0,
    }),
  );
});
