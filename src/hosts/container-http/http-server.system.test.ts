import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { defineFeature } from "../../app/features/feature.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { closeResources } from "../../app/server/close-resources.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { AuthOptions } from "../../base/identity/auth-options.ts";
import { signToken } from "../../base/identity/token.ts";
import { systemClock } from "../../base/process/clock.ts";
import type { ShutdownTimes } from "../../base/process/shutdown-limits.ts";
import { currentContext } from "../../base/request/ambient.ts";
import { reply } from "../../parts/http/reply.ts";
import { beginLife } from "../container/process-life.ts";
import type { UpgradeHandler } from "./http-options.ts";
import { type ContainerServer, createHttpServer } from "./http-server.ts";

const open: HttpServer[] = [];

afterEach(() => {
  for (const http of open.splice(0)) {
    http.closeAllConnections();
    http.close();
  }
});

/** Ends handlers of `POST /outlast`, which do not obey their signal. */
const outlasting: (() => void)[] = [];

const probe = defineFeature("probe", (r) => {
  r.query("time.wait", {
    route: "GET /wait",
    access: access.everyone,
    handler: (ctx) => {
      ctx.log.info("wait.began");
      return new Promise((_, reject) =>
        ctx.signal?.addEventListener("abort", () => reject(ctx.signal?.reason)),
      );
    },
  });
  r.query("time.abortable", {
    route: "GET /abortable",
    access: access.everyone,
    // What Node's own timers and the SDK throw is an AbortError, whatever the reason.
    handler: (ctx) => sleep(60_000, {}, ctx.signal === undefined ? {} : { signal: ctx.signal }),
  });
  r.query("time.stick", {
    route: "GET /stick",
    access: access.everyone,
    handler: (ctx) => {
      ctx.log.info("stick.began");
      return new Promise(() => {});
    },
  });
  r.write("time.outlast", {
    route: "POST /outlast",
    access: access.everyone,
    handler: (ctx) => {
      const { promise: go, resolve } = Promise.withResolvers<void>();
      outlasting.push(resolve);
      ctx.log.info("outlast.began");
      return go.then(() => ctx.log.info("outlast.ended"));
    },
  });
  r.write("body.size", {
    route: "POST /size",
    access: access.everyone,
    body: "bytes",
    handler: async (ctx) => ({ bytes: ctx.request?.rawBody.length, signal: "signal" in ctx }),
  });
  r.write("cookie.set", {
    route: "POST /cookie",
    access: access.everyone,
    handler: async () => reply({}, { cookies: { a: { value: "1" }, b: { value: "2" } } }),
  });
  r.query("text.show", {
    route: "GET /text",
    access: access.everyone,
    handler: async () => reply("text", { headers: { "content-type": "text/plain" } }),
  });
  r.query("headers.show", {
    route: "GET /headers",
    access: access.everyone,
    handler: async (ctx) => ctx.request?.headers,
  });
  r.query("stream.show", {
    route: "GET /stream",
    access: access.everyone,
    handler: async () =>
      reply(new Response("streamed").body, { headers: { "content-type": "text/plain" } }),
  });
  const text = { headers: { "content-type": "text/plain" } };
  const streaming = (
    name: string,
    route: string,
    source: (pulls: number, controller: ReadableStreamDefaultController<Uint8Array>) => unknown,
  ) =>
    r.query(name, {
      route,
      access: access.everyone,
      handler: async () => {
        let pulls = 0;
        return reply(
          new ReadableStream<Uint8Array>({
            pull: async (controller) => void (await source(++pulls, controller)),
          }),
          text,
        );
      },
    });
  const bytes = (chunk: string) => new TextEncoder().encode(chunk);
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
  streaming("stream.failing", "GET /failing", (pulls, controller) =>
    pulls === 1
      ? controller.enqueue(bytes("begun"))
      : controller.error(new Error("the source failed")),
  );
  streaming("stream.endless", "GET /endless", async (_pulls, controller) => {
    await pause();
    controller.enqueue(bytes("more "));
  });
  streaming("stream.chunks", "GET /chunks", async (pulls, controller) => {
    await pause();
    if (pulls > 5) controller.close();
    else controller.enqueue(bytes("chunk "));
  });
  streaming("stream.ambient", "GET /ambient", (pulls, controller) => {
    controller.enqueue(bytes(`${pulls === 1 ? "" : " "}${currentContext()?.requestId}`));
    if (pulls === 2) controller.close();
  });
  r.query("text.slow", {
    route: "GET /slow",
    access: access.everyone,
    handler: async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return reply("slow", text);
    },
  });
  r.write("body.guarded", {
    route: "POST /guarded",
    access: access.authenticated,
    body: "bytes",
    handler: async () => 1,
  });
  r.query("stream.broken", {
    route: "GET /broken",
    access: access.everyone,
    handler: async () =>
      reply(
        new ReadableStream({
          pull() {
            throw "no error at all";
          },
        }),
        { headers: { "content-type": "text/plain" } },
      ),
  });
});

async function serving(
  options: Parameters<typeof createHttpServer>[1] = {},
  auth?: AuthOptions,
  environment: "development" | "test" | "production" = "test",
) {
  const server = buildServer({
    features: [probe],
    limits: { bodyBytes: 1_000 },
    environment,
    ...(auth === undefined ? {} : { auth }),
  });
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: {},
    write: (line) => void logs.push(JSON.parse(line)),
    openAdapters: async () => unusedAdapters,
  });
  const container = createHttpServer(runtime, options);
  const { http } = container;
  open.push(http);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  return {
    server,
    container,
    runtime,
    http,
    logs,
    port,
    get: (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init),
  };
}

/** Sends text as it is and resolves to everything that comes back. */
function exchange(
  port: number,
  text: string,
  then?: (socket: ReturnType<typeof connect>) => void,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text, () => then?.(socket)));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
  });
}

test("serves a connection opened just before the listener closes, and closes it after half a second if unused", async () => {
  const { container, http, port } = await serving();
  const now = vi.spyOn(performance, "now").mockReturnValue(10_000);
  try {
    const open = async () => {
      const accepted = once(http, "connection");
      const socket = connect(port, "127.0.0.1");
      await accepted;
      return { socket, closed: once(socket, "close") };
    };
    const [used, unused] = [await open(), await open()];
    http.close();
    now.mockReturnValue(10_499);
    container.drain.closeIdle();
    used.socket.write("GET /text HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    const answer = await Promise.race([
      once(used.socket, "data"),
      used.closed.then(() => ["closed"]),
    ]);
    expect(String(answer[0])).toMatch(/^HTTP\/1\.1 200 /);
    expect(unused.socket.closed).toBe(false);
    now.mockReturnValue(10_500);
    container.drain.closeIdle();
    await unused.closed;
  } finally {
    now.mockRestore();
  }
});

test("sends text, streams and cookies; HEAD gets the headers only", async () => {
  const { get } = await serving();

  expect(await (await get("/text")).text()).toBe("text");
  expect(await (await get("/stream")).text()).toBe("streamed");
  expect((await get("/cookie", { method: "POST" })).headers.getSetCookie()).toHaveLength(2);
  const head = await get("/text", { method: "HEAD" });
  expect([head.headers.get("content-length"), await head.text()]).toEqual(["4", ""]);
});

test("OPTIONS lists the allowed methods, and an invalid token leaves the caller of an open route anonymous", async () => {
  const { get } = await serving();

  expect((await get("/text", { method: "OPTIONS" })).headers.get("allow")).toBe(
    "GET, HEAD, OPTIONS",
  );
  expect((await get("/text", { headers: { authorization: "Bearer x.y.z" } })).status).toBe(200);
});

test("without the key set, an open route treats the caller as unknown, and a guarded one answers 503", async () => {
  const { get, logs } = await serving({}, { jwks: "http://127.0.0.1:9/keys" });
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "RS256", kid: "k" })}.${part({ sub: "ann", tenantId: "acme", exp: 4_000_000_000 })}.c2ln`;
  const headers = { authorization: `Bearer ${token}` };

  expect((await get("/text", { headers })).status).toBe(200);
  expect((await get("/guarded", { method: "POST", headers })).status).toBe(503);
  expect(logs).toContainEqual(
    expect.objectContaining({ level: "warn", msg: "identity.unavailable" }),
  );
});

test("receives a body whole, in one chunk or several, and gives every request a signal", async () => {
  const { get, port } = await serving();
  const head = "POST /size HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";

  expect(await (await get("/size", { method: "POST", body: "abc" })).json()).toEqual({
    bytes: 3,
    signal: true,
  });
  expect(
    await exchange(
      port,
      `${head}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n`,
    ),
  ).toContain('{"bytes":5,');
  expect(await exchange(port, `${head}content-length: 0\r\n\r\n`)).toContain('{"bytes":0,');
});

test("answers 413 to a body over the limit, announced or not, and closes a connection whose rest never comes", async () => {
  const { port } = await serving({ headersTimeoutMs: 3_000, requestTimeoutMs: 3_000 });
  const announced = await exchange(
    port,
    "POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n",
  );
  const chunked = await exchange(
    port,
    `POST /size HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${"fa\r\n".concat("x".repeat(250), "\r\n").repeat(5)}`,
  );

  for (const answer of [announced, chunked]) {
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('"error":"payload_too_large"');
  }
});

test.each(["gzip, chunked", "GZIP , chunked", "identity, chunked"])(
  "answers 501 to a body in an unsupported coding, and keeps its connection: %s",
  async (coding) => {
    const { port } = await serving();
    const answers = await exchange(
      port,
      `POST /size HTTP/1.1\r\nhost: x\r\ntransfer-encoding: ${coding}\r\n\r\n2\r\nab\r\n0\r\n\r\nGET /text HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
    );

    expect(answers).toMatch(
      /^HTTP\/1\.1 501 [\s\S]*"error":"malformed_request"[\s\S]*HTTP\/1\.1 200 /,
    );
  },
);

test("reads a chunked body in any spelling, and dates even a response without a request", async () => {
  const { port } = await serving();
  const body = "transfer-encoding: Chunked\r\nconnection: close\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  expect(await exchange(port, `POST /size HTTP/1.1\r\nhost: x\r\n${body}`)).toContain(
    '{"bytes":2,',
  );
  const refused = await exchange(port, "no HTTP\r\n\r\n");
  const [, date = ""] = /^date: (\w{3}, \d{2} \w{3} \d{4} [\d:]{8} GMT)\r$/im.exec(refused) ?? [];

  expect(refused).toMatch(/^HTTP\/1\.1 400 /);
  expect(Math.abs(Date.now() - Date.parse(date))).toBeLessThan(600_000);
});

test("ends an upload that never finishes when its time is over, even on an unknown route", async () => {
  const { port } = await serving({ requestTimeoutMs: 4_000 });
  const upload = (path: string) => {
    let timer: NodeJS.Timeout | undefined;
    return exchange(
      port,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`,
      (socket) => {
        timer = setInterval(() => socket.write(`fa\r\n${"x".repeat(250)}\r\n`), 1);
        socket.once("close", () => clearInterval(timer));
      },
    );
  };

  const answers = await Promise.all([upload("/size"), upload("/nowhere")]);
  expect(answers[0]).toMatch(/^HTTP\/1\.1 413 /);
  expect(answers[1]).toMatch(/^HTTP\/1\.1 404 /);
});

test.each([
  ["ends", (socket: Socket) => socket.end()],
  ["is reset", (socket: Socket) => socket.resetAndDestroy()],
])(
  "a body whose connection %s early is a malformed request, not a server error",
  async (_name, leave) => {
    const { port, logs } = await serving();
    // The server is in mid-body once it has asked for the rest of it.
    await exchange(
      port,
      "POST /size HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\nabc",
      (socket) => {
        socket.once("data", () => leave(socket));
      },
    );

    await expect
      .poll(() => logs)
      .toContainEqual(
        expect.objectContaining({
          level: "warn",
          msg: "request.failed",
          error: "malformed_request",
        }),
      );
  },
);

test("accepts an absolute target, with or without a path", async () => {
  const { port } = await serving();
  const ask = (target: string) =>
    exchange(port, `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);

  expect(await ask("http://example.com/text?a=1")).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask("http://example.com")).toMatch(/^HTTP\/1\.1 404 /);
});

test.each([
  ["what is no HTTP", "nonsense\r\n\r\n", 400],
  ["headers that are too large", `GET / HTTP/1.1\r\nlarge: ${"x".repeat(5_000)}\r\n\r\n`, 431],
])("refuses %s in the uniform body", async (_name, text, status) => {
  const { port, logs } = await serving({ maxHeaderBytes: 4_096 });
  const answer = await exchange(port, text);

  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  const { requestId } = JSON.parse(answer.slice(answer.indexOf("{")));
  expect(answer).toContain(`x-request-id: ${requestId}`);
  expect(logs).toContainEqual(
    expect.objectContaining({ msg: "request.failed", status, requestId }),
  );
});

test("garbage after a request does not affect its response, which is sent whole before the connection ends", async () => {
  const { port } = await serving();
  const slow = await exchange(
    port,
    "GET /slow HTTP/1.1\r\nhost: x\r\nx-request-id: p1\r\n\r\nGARBAGE\r\n\r\n",
  );
  const chunks = await exchange(
    port,
    "GET /chunks HTTP/1.1\r\nhost: x\r\nx-request-id: p2\r\n\r\n",
    (socket) => socket.write("GARBAGE\r\n\r\n"),
  );

  expect(slow).toMatch(/^HTTP\/1\.1 200 [\s\S]*x-request-id: p1[\s\S]*slow$/);
  expect(chunks).toMatch(/^HTTP\/1\.1 200 [\s\S]*x-request-id: p2[\s\S]*\r\n0\r\n\r\n$/);
  expect(slow + chunks).not.toContain("malformed_request");
});

test("answers a broken or slow body under the request's own ID, and logs it once", async () => {
  const { port, logs } = await serving({ requestTimeoutMs: 4_000, headersTimeoutMs: 3_000 });
  const head = "POST /size HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\n";
  const broken = await exchange(
    port,
    `${head}x-request-id: bc\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n`,
  );
  const slow = await exchange(port, `${head}x-request-id: slow\r\ncontent-length: 9\r\n\r\nabc`);

  expect(broken).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-request-id: bc/);
  expect(slow).toMatch(/^HTTP\/1\.1 408 [\s\S]*x-request-id: slow/);
  expect(
    logs
      .filter(({ msg }) => msg === "request.failed")
      .map(({ requestId, status }) => [requestId, status]),
  ).toEqual([
    ["bc", 400],
    ["slow", 408],
  ]);
});

test.each([
  ["without Host", "GET /text HTTP/1.1\r\nx-request-id: r1\r\n\r\n", 400],
  [
    "with an expectation that nobody meets",
    "GET /text HTTP/1.1\r\nhost: x\r\nexpect: weird\r\nx-request-id: r1\r\n\r\n",
    417,
  ],
  ["with two hosts", "GET /text HTTP/1.1\r\nhost: a\r\nHost: b\r\nx-request-id: r1\r\n\r\n", 400],
  [
    "with the same host twice",
    "GET /text HTTP/1.1\r\nhost: a\r\nhost: a\r\nx-request-id: r1\r\n\r\n",
    400,
  ],
  [
    "with two hosts, of HTTP/1.0",
    "GET /text HTTP/1.0\r\nhost: a\r\nhost: b\r\nx-request-id: r1\r\n\r\n",
    400,
  ],
  ["with an empty host", "GET /text HTTP/1.1\r\nhost:\r\nx-request-id: r1\r\n\r\n", 400],
  ["with a space in its host", "GET /text HTTP/1.1\r\nhost: a b\r\nx-request-id: r1\r\n\r\n", 400],
  ["with a tab in its host", "GET /text HTTP/1.1\r\nhost: a\tb\r\nx-request-id: r1\r\n\r\n", 400],
  ["with a path in its host", "GET /text HTTP/1.1\r\nhost: a/b\r\nx-request-id: r1\r\n\r\n", 400],
  ["with a user in its host", "GET /text HTTP/1.1\r\nhost: u@a\r\nx-request-id: r1\r\n\r\n", 400],
  [
    "with a host that is not ASCII",
    "GET /text HTTP/1.1\r\nhost: ü\r\nx-request-id: r1\r\n\r\n",
    400,
  ],
  [
    "with two credentials",
    "GET /text HTTP/1.1\r\nhost: a\r\nauthorization: Bearer a\r\nAuthorization: Bearer a\r\nx-request-id: r1\r\n\r\n",
    400,
  ],
  ["for a tunnel", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\nx-request-id: r1\r\n\r\n", 405],
])("refuses a request %s under its own ID, in the uniform body", async (_name, text, status) => {
  const { port } = await serving();
  const answer = await exchange(port, text, (socket) => socket.end());

  expect(answer).toMatch(
    new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*x-request-id: r1[\\s\\S]*"requestId":"r1"`),
  );
});

test.each([
  ["nonsense", "nonsense\r\n\r\n"],
  ["a tunnel", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"],
])(
  "a request refused at the socket (%s) shows its stack in development only",
  async (_name, text) => {
    const bodyIn = async (environment: "development" | "production") => {
      const { port } = await serving({}, undefined, environment);
      const answer = await exchange(port, text);
      return JSON.parse(answer.slice(answer.indexOf("{"))) as Record<string, unknown>;
    };
    const named = {
      error: expect.any(String),
      message: expect.any(String),
      requestId: expect.any(String),
    };

    expect(await bodyIn("production")).toEqual(named);
    expect(await bodyIn("development")).toEqual({
      ...named,
      stack: expect.stringContaining("Error: "),
    });
  },
);

test("refuses a tunnel as problem+json when asked to, and logs the caller", async () => {
  const secret = "s".repeat(32);
  const { port, logs } = await serving({}, { secret });
  const token = await signToken(
    { secret, userId: "ann", tenantId: "acme", roles: [] },
    systemClock,
  );
  const headers = `host: a\r\naccept: application/problem+json\r\nauthorization: Bearer ${token}`;
  const answer = await exchange(port, `CONNECT a:1 HTTP/1.1\r\n${headers}\r\n\r\n`);

  expect(answer).toMatch(
    /^HTTP\/1\.1 405 [\s\S]*content-type: application\/problem\+json[\s\S]*"status":405/,
  );
  const own = { tenantId: "acme", userId: "ann" };
  await expect
    .poll(() => logs)
    .toMatchObject([
      { level: "warn", msg: "request.failed", ...own },
      { level: "info", msg: "request.completed", ...own, method: "CONNECT", status: 405 },
    ]);
});

test("HTTP/1.0 does not need a Host", async () => {
  const { port } = await serving();

  expect(await exchange(port, "GET /text HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
});

test("accepts hosts as clients send them", async () => {
  const { port } = await serving();
  for (const host of [
    "localhost:3000",
    "[::1]:80",
    "my_service.internal.",
    "xn--bcher-kva.example",
    "203.0.113.9:",
  ]) {
    expect(
      await exchange(port, `GET /text HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`),
    ).toMatch(/^HTTP\/1\.1 200 /);
  }
});

test("OPTIONS * lists what the whole server allows, and other methods get 404 for *", async () => {
  const { port } = await serving();
  const ask = (method: string) =>
    `${method} * HTTP/1.1\r\nhost: x\r\nx-request-id: r1\r\nconnection: close\r\n\r\n`;
  const answer = await exchange(port, ask("OPTIONS"));

  expect(answer).toMatch(/^HTTP\/1\.1 204 [\s\S]*x-request-id: r1/);
  expect(answer).toMatch(/^allow: DELETE, GET, HEAD, OPTIONS, POST, PUT\r$/im);
  expect(await exchange(port, ask("GET"))).toMatch(/^HTTP\/1\.1 404 [\s\S]*x-request-id: r1/);
});

test("passes every header to the handler as text, with repeated ones joined", async () => {
  const { port } = await serving();
  const twice =
    "x-a: 1\r\nX-A: 2\r\nreferer: a\r\nreferer: b\r\ncookie: a=1\r\ncookie: b=2\r\nset-cookie: c\r\nset-cookie: d\r\n";
  const answer = await exchange(
    port,
    `GET /headers HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${twice}\r\n`,
  );

  expect(JSON.parse(answer.slice(answer.indexOf("{")))).toMatchObject({
    "x-a": "1, 2",
    referer: "a, b",
    cookie: "a=1; b=2",
    "set-cookie": "c, d",
  });
});

test("disconnects a refused client that keeps its side open", async () => {
  const { http, port } = await serving();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () =>
    socket.write("nonsense\r\n\r\n"),
  );
  socket.on("error", () => {});
  await once(socket, "data");

  await expect.poll(() => countConnections(http)).toBe(0);
  socket.destroy();
});

test("answers 500 to a stream that fails before its first byte, like any other error", async () => {
  const { get, logs } = await serving();
  const response = await get("/broken");

  expect([response.status, await response.json()]).toMatchObject([
    500,
    { error: "internal_error" },
  ]);
  expect(logs).toContainEqual(
    expect.objectContaining({
      level: "error",
      msg: "request.failed",
      handler: "probe.stream.broken",
    }),
  );
});

test("reads a stream in the request's own context", async () => {
  const { get } = await serving();

  expect(await (await get("/ambient", { headers: { "x-request-id": "r1" } })).text()).toBe("r1 r1");
});

test("refuses a body over the limit before authentication, and a compressed one after it", async () => {
  const { get } = await serving();
  const large = await get("/guarded", { method: "POST", body: "x".repeat(1_001) });
  const compressed = { method: "POST", body: "x", headers: { "content-encoding": "gzip" } };

  expect(large.status).toBe(413);
  expect((await get("/guarded", compressed)).status).toBe(401);
  expect((await get("/size", compressed)).status).toBe(415);
  expect(
    (await get("/size", { ...compressed, headers: { "content-encoding": "identity" } })).status,
  ).toBe(200);
});

test("drops a reset connection without a response", async () => {
  const { http } = await serving();
  const destroyed: boolean[] = [];
  const socket = { writable: true, destroy: () => void destroyed.push(true) };
  http.emit("clientError", Object.assign(new Error("reset"), { code: "ECONNRESET" }), socket);
  http.emit("clientError", new Error("late"), { ...socket, writable: false });

  expect(destroyed).toEqual([true, true]);
});

test("answers 400 to a parser error without a code", async () => {
  const { http } = await serving();
  const written: string[] = [];
  http.emit("clientError", new Error("odd"), {
    writable: true,
    on: () => {},
    destroy: () => {},
    end: (text: string) => void written.push(text),
  });

  expect(written[0]).toMatch(/^HTTP\/1\.1 400 Bad Request/);
});

test("a client that goes away aborts the handler, and is logged as a warning", async () => {
  const { get, logs } = await serving();
  const leaving = new AbortController();
  const asked = get("/wait", { signal: leaving.signal }).catch(() => "gone");
  await expect.poll(() => logs.map(({ msg }) => msg)).toContain("wait.began");
  leaving.abort();

  expect(await asked).toBe("gone");
  await expect
    .poll(() => logs)
    .toContainEqual(
      expect.objectContaining({
        level: "warn",
        msg: "request.aborted",
        handler: "probe.time.wait",
      }),
    );
});

test("cuts off a stream that breaks later, and logs it as an error of its request", async () => {
  const { get, logs } = await serving();
  const outcome = await get("/failing", { headers: { "x-request-id": "r1" } })
    .then((response) => response.text())
    .catch(() => "cut off");

  expect(outcome).toBe("cut off");
  await expect
    .poll(() => logs)
    .toContainEqual(
      expect.objectContaining({
        level: "error",
        msg: "response.cut_off",
        requestId: "r1",
        message: "the source failed",
        stack: expect.any(String),
      }),
    );
});

test("a client that leaves mid-stream is logged as a warning", async () => {
  const { get, logs } = await serving();
  const leaving = new AbortController();
  const response = await get("/endless", { signal: leaving.signal });
  leaving.abort();

  await expect(response.text()).rejects.toThrow();
  await expect
    .poll(() => logs)
    .toContainEqual(
      expect.objectContaining({
        level: "warn",
        msg: "request.aborted",
        handler: "probe.stream.endless",
      }),
    );
});

/** Serves, and is told to stop: the exit code. */
function ended(runtime: Runtime, container: ContainerServer, times: ShutdownTimes): Promise<0 | 1> {
  const life = beginLife(runtime, times);
  life.server = container;
  life.tell({ type: "started" });
  life.tell({ type: "terminate" });
  return life.ended;
}

test("draining: every response asks the client to close, and the server ends when none is in flight", async () => {
  const { container, runtime, get } = await serving();
  runtime.lifecycle.drain();

  expect((await get("/text")).headers.get("connection")).toBe("close");
  expect(await ended(runtime, container, { lingerMs: 0, drainMs: 10_000, totalMs: 20_000 })).toBe(
    0,
  );
});

test("a drain does not wait for a connection that was never used or whose stream has ended", async () => {
  const { container, runtime, port, get } = await serving();
  const unused = connect(port, "127.0.0.1");
  unused.on("error", () => {});
  await once(unused, "connect");
  const stream = await get("/chunks");
  const drained = ended(runtime, container, { lingerMs: 0, drainMs: 20_000, totalMs: 30_000 });

  expect(await stream.text()).toMatch(/^(chunk )+$/);
  expect(await drained).toBe(0);
});

test("cuts off requests still in flight after their time, and logs them", async () => {
  const { container, runtime, get, logs } = await serving();
  const stuck = get("/stick", { headers: { "x-request-id": "stuck-1" } }).catch(() => "cut off");
  await expect.poll(() => container.drain.underWay().count).toBe(1);

  expect(await ended(runtime, container, { lingerMs: 5, drainMs: 20, totalMs: 10_000 })).toBe(1);
  expect(await stuck).toBe("cut off");
  expect(logs).toContainEqual(
    expect.objectContaining({
      level: "error",
      msg: "shutdown.requests_cut_off",
      requests: ["GET /stick"],
      requestIds: ["stuck-1"],
    }),
  );
  expect(logs).toContainEqual(
    expect.objectContaining({
      msg: "shutdown.completed",
      clean: false,
      exitCode: 1,
      cutOff: ["in-flight-drain"],
      cutOffRequestIds: ["stuck-1"],
    }),
  );
});

/** A request of a client that disconnects while the handler runs. */
async function abandoned(
  path: string,
  { port, logs, container }: Awaited<ReturnType<typeof serving>>,
) {
  const client = connect(port, "127.0.0.1", () =>
    client.write(
      `${path} HTTP/1.1\r\nhost: x\r\nx-request-id: left-1\r\ncontent-length: 0\r\n\r\n`,
    ),
  );
  await expect
    .poll(() => logs.map(({ msg }) => String(msg)))
    .toContainEqual(expect.stringContaining("began"));
  client.destroy();
  await expect.poll(() => container.connections.known.size).toBe(0);
}

test("a drain waits for a handler whose client has disconnected", async () => {
  const served = await serving();
  const { container, runtime, http, logs } = served;
  await abandoned("POST /outlast", served);
  expect(container.drain.underWay()).toEqual({
    requests: ["POST /outlast"],
    requestIds: ["left-1"],
    count: 1,
    upgraded: 0,
  });
  const closed = once(http, "close");
  const drained = ended(runtime, container, { lingerMs: 0, drainMs: 30_000, totalMs: 60_000 });
  await closed;
  expect(runtime.lifecycle.state).toBe("in-flight-drain");
  outlasting.pop()?.();

  expect(await drained).toBe(0);
  const lines = logs.map(({ msg }) => msg);
  expect(lines.indexOf("outlast.ended")).toBeLessThan(lines.indexOf("shutdown.completed"));
  expect(lines).toContain("outlast.ended");
});

test("a drain notices a handler whose client disconnects as the last one", async () => {
  const served = await serving();
  const { container, runtime, port, http, logs } = served;
  const client = connect(port, "127.0.0.1", () =>
    client.write("POST /outlast HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"),
  );
  await expect.poll(() => logs.map(({ msg }) => msg)).toContain("outlast.began");
  const closed = once(http, "close");
  const drained = ended(runtime, container, { lingerMs: 0, drainMs: 30_000, totalMs: 60_000 });
  await expect.poll(() => http.listening).toBe(false);
  client.destroy();
  await closed;
  expect(runtime.lifecycle.state).toBe("in-flight-drain");
  outlasting.pop()?.();

  expect(await drained).toBe(0);
});

test("cuts off and names a handler whose client has disconnected and that does not end in time", async () => {
  const served = await serving();
  const { container, runtime, logs } = served;
  await abandoned("GET /stick", served);
  expect(await ended(runtime, container, { lingerMs: 5, drainMs: 20, totalMs: 10_000 })).toBe(1);

  expect(logs).toContainEqual(
    expect.objectContaining({
      msg: "shutdown.requests_cut_off",
      requests: ["GET /stick"],
      requestIds: ["left-1"],
      count: 1,
    }),
  );
});

test("a drain that was cut off no longer waits for handlers", async () => {
  const served = await serving();
  const { drain } = served.container;
  await abandoned("GET /stick", served);
  const isOver = vi.fn<() => void>();
  drain.close(isOver);
  drain.cut();

  await expect.poll(() => isOver.mock.calls.length).toBe(1);
});

test("warns requests in flight shortly before their time is over, so that they can still answer", async () => {
  const { container, runtime, get, logs } = await serving();
  const told = get("/wait");
  await expect.poll(() => logs.map(({ msg }) => msg)).toContain("wait.began");

  expect(await ended(runtime, container, { lingerMs: 5, drainMs: 6_000, totalMs: 20_000 })).toBe(0);
  const answer = await told;
  expect([answer.status, await answer.json()]).toMatchObject([504, { error: "timeout" }]);
  expect(logs).toContainEqual(
    expect.objectContaining({
      level: "error",
      msg: "request.failed",
      error: "timeout",
      status: 504,
      handler: "probe.time.wait",
    }),
  );
  expect(logs.map(({ msg }) => msg)).not.toContain("request.aborted");
});

test("an error of the SDK caused by the drain's end is answered with 504 and logged as an error", async () => {
  const { container, runtime, get, logs } = await serving();
  const told = get("/abortable");
  await expect.poll(() => container.drain.underWay().count).toBe(1);

  expect(await ended(runtime, container, { lingerMs: 5, drainMs: 6_000, totalMs: 20_000 })).toBe(0);
  const answer = await told;
  expect([answer.status, await answer.json()]).toMatchObject([504, { error: "timeout" }]);
  expect(logs.filter(({ msg }) => String(msg).startsWith("request."))).toMatchObject([
    { level: "error", msg: "request.failed", error: "timeout", status: 504 },
    { level: "info", msg: "request.completed", status: 504 },
  ]);
});

test("a stream cut off by the drain is an error of the service, not a client that left", async () => {
  const { container, runtime, get, logs } = await serving();
  const response = await get("/endless");
  const text = response.text().catch(() => "cut off");

  expect(await ended(runtime, container, { lingerMs: 5, drainMs: 20, totalMs: 10_000 })).toBe(1);
  expect(await text).toBe("cut off");
  await expect
    .poll(() => logs)
    .toContainEqual(
      expect.objectContaining({
        level: "error",
        msg: "response.cut_off",
        handler: "probe.stream.endless",
      }),
    );
  expect(logs.map(({ msg }) => msg)).not.toContain("request.aborted");
});

const upgradeRequest =
  "GET /echo?a=1 HTTP/1.1\r\nhost: x\r\nx-request-id: up1\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
const switching =
  "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/** Sends back what comes, and ends with `bye` once the process drains. */
const echo: UpgradeHandler = (_request, socket, head, draining) => {
  socket.write(switching);
  if (head.length > 0) socket.write(head);
  socket.on("data", (chunk) => socket.write(chunk));
  draining.addEventListener("abort", () => socket.end("bye"));
};

/** A client of an upgraded connection, and what it has got. */
async function upgradedClient(port: number, text = upgradeRequest) {
  const socket = connect(port, "127.0.0.1");
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk.toString();
  });
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.write(text);
  await expect.poll(() => got).toContain("101 Switching");
  return { socket, closed, got: () => got };
}

test.each([
  ["two hosts", "host: x\r\nhost: y\r\n"],
  ["no host", ""],
  ["two credentials", "host: x\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n"],
])(
  "refuses a request for an upgrade with %s before the application sees it",
  async (_name, headers) => {
    const upgrade = vi.fn<UpgradeHandler>((_request, socket) => void socket.destroy());
    const { port } = await serving({ upgrade });
    const answer = await exchange(port, upgradeRequest.replace("host: x\r\n", headers));

    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-request-id: up1[\s\S]*malformed_request/);
    expect(upgrade).not.toHaveBeenCalled();
  },
);

test("treats an upgrade request as a plain one when there is no handler for it", async () => {
  const { port } = await serving();
  const plain = upgradeRequest
    .replace("/echo?a=1", "/text")
    .replace("connection: upgrade", "connection: upgrade, close");
  expect(await exchange(port, plain)).toMatch(/^HTTP\/1\.1 200 [\s\S]*text$/);
});

test("hands an upgraded connection to the application with its first bytes and the request's own context", async () => {
  const contexts: unknown[] = [];
  const { port } = await serving({
    upgrade: (...given) => {
      contexts.push(currentContext()?.requestId, given[0].url);
      return echo(...given);
    },
  });
  const client = await upgradedClient(port, `${upgradeRequest}early`);
  client.socket.write(" late");
  await expect.poll(client.got).toBe(`${switching}early late`);
  client.socket.destroy();
  expect(contexts).toEqual(["up1", "/echo?a=1"]);
});

test("tells an upgraded connection that draining begins, and waits until it has ended", async () => {
  const { container, runtime, port, logs } = await serving({ upgrade: echo });
  const client = await upgradedClient(port);
  const other = await upgradedClient(port);
  other.socket.destroy(); // one that has gone is not told
  await expect.poll(() => countConnections(container.http)).toBe(1);

  expect(await ended(runtime, container, { lingerMs: 0, drainMs: 30_000, totalMs: 60_000 })).toBe(
    0,
  );
  await client.closed;
  expect(client.got()).toBe(`${switching}bye`);
  expect(logs).toContainEqual(expect.objectContaining({ msg: "shutdown.completed", cutOff: [] }));
});

test("cuts off an upgraded connection that does not end, and counts and names it", async () => {
  const { container, runtime, port, logs } = await serving({
    upgrade: (_request, socket) => void socket.write(switching),
  });
  const clients = await Promise.all([upgradedClient(port), upgradedClient(port)]);

  expect(await ended(runtime, container, { lingerMs: 0, drainMs: 50, totalMs: 60_000 })).toBe(1);
  await Promise.all(clients.map(({ closed }) => closed));
  expect(logs).toContainEqual(
    expect.objectContaining({
      msg: "shutdown.requests_cut_off",
      requests: ["GET /echo (upgraded)", "GET /echo (upgraded)"],
      requestIds: ["up1", "up1"],
      count: 2,
      upgraded: 2,
    }),
  );
});

test.each([
  [
    "throws",
    () => {
      throw new Error("no upgrade today");
    },
  ],
  ["rejects", () => Promise.reject(new Error("no upgrade today"))],
])(
  "when an upgrade handler %s, logs it under the request's ID and destroys the connection",
  async (_name, upgrade) => {
    const { port, logs } = await serving({ upgrade });

    expect(await exchange(port, upgradeRequest)).toBe("");
    await expect
      .poll(() => logs)
      .toContainEqual(
        expect.objectContaining({
          level: "error",
          msg: "upgrade.failed",
          requestId: "up1",
          message: "no upgrade today",
        }),
      );
  },
);

test("an upgraded connection that breaks does not crash the process", async () => {
  const broken: string[] = [];
  const { port } = await serving({
    upgrade: (_request, socket) => {
      socket.write(switching);
      socket.on("close", () => broken.push("closed"));
      socket.destroy(new Error("broken")); // nobody but the container listens for it
    },
  });
  await exchange(port, upgradeRequest);
  await expect.poll(() => broken).toEqual(["closed"]);
});

test("while draining, answers 503 to an upgrade request, in the uniform body", async () => {
  const { port, runtime } = await serving({ upgrade: echo });
  runtime.lifecycle.drain();
  const answer = await exchange(port, upgradeRequest);

  expect(answer).toMatch(
    /^HTTP\/1\.1 503 [\s\S]*x-request-id: up1[\s\S]*connection: close[\s\S]*"requestId":"up1"/,
  );
});

test.each([
  ["an upgrade", upgradeRequest],
  ["a tunnel", "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n"],
])(
  "%s requested behind another request does not get into its response, which closes the connection",
  async (_name, text) => {
    const { port } = await serving({ upgrade: echo });
    const answer = await exchange(
      port,
      `GET /slow HTTP/1.1\r\nhost: x\r\nx-request-id: p1\r\n\r\n${text}`,
    );

    expect(answer).toMatch(
      /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*x-request-id: p1[\s\S]*slow$/i,
    );
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  },
);

const ask = (path: string, id: string) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: ${id}\r\n\r\n`;
const idsOf = (answer: string) => [...answer.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id);

test("answers pipelined requests in order, each under its own ID", async () => {
  const { port } = await serving();
  const answer = await exchange(
    port,
    `${ask("/slow", "p1")}${ask("/text", "p2")}${ask("/nowhere", "p3")}`,
    (socket) => {
      socket.on("data", (chunk) => chunk.toString().includes("p3") && socket.end());
    },
  );

  expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
    "200",
    "200",
    "404",
  ]);
  expect(idsOf(answer)).toEqual(["p1", "p2", "p3"]);
  expect(answer).not.toMatch(/connection: close/i);
});

test("draining: answers all pipelined requests received, and closes the connection with the last one", async () => {
  const { port, runtime } = await serving();
  runtime.lifecycle.drain();
  const answer = await exchange(
    port,
    `${ask("/slow", "p1")}${ask("/text", "p2")}${ask("/slow", "p3")}`,
  );

  expect(idsOf(answer)).toEqual(["p1", "p2", "p3"]);
  expect(answer.match(/connection: close/gi)).toHaveLength(1);
  expect(answer.indexOf("p3")).toBeLessThan(answer.indexOf("slow", answer.indexOf("p2")));
});

test("draining: does not execute a request that follows a closing response", async () => {
  const { port, runtime, logs } = await serving();
  runtime.lifecycle.drain();
  const answer = await exchange(port, ask("/chunks", "p1"), (socket) => {
    socket.once("data", () => socket.write(ask("/wait", "p2"))); // its answer has begun, and said that it is the last
  });

  expect(idsOf(answer)).toEqual(["p1"]);
  expect(answer).toMatch(/connection: close[\s\S]*\r\n0\r\n\r\n$/i);
  expect(logs.map(({ msg }) => msg)).not.toContain("wait.began");
});

test("answers all pipelined requests despite garbage behind them", async () => {
  const { port } = await serving();
  const answer = await exchange(port, `${ask("/slow", "p1")}${ask("/slow", "p2")}GARBAGE\r\n\r\n`);

  expect(idsOf(answer)).toEqual(["p1", "p2"]);
});

test("closes connections beyond the limit at once, and logs it", async () => {
  const { port, logs } = await serving({ maxConnections: 1 });
  const first = connect(port, "127.0.0.1");
  await once(first, "connect");
  const second = connect(port, "127.0.0.1");
  second.on("error", () => {});
  await new Promise((resolve) => second.on("close", resolve));
  first.write(ask("/text", "p1"));
  await once(first, "data");
  first.destroy();

  expect(logs).toContainEqual(
    expect.objectContaining({
      level: "warn",
      msg: "server.connections_refused",
      count: 1,
      maxConnections: 1,
    }),
  );
});

test("drops a client that sends nothing in time without a response or a line", async () => {
  const { port, logs } = await serving({ headersTimeoutMs: 3_000 });

  expect(await exchange(port, "")).toBe("");
  expect(await exchange(port, "GET /text")).toMatch(/^HTTP\/1\.1 408 /);
  expect(logs.filter(({ msg }) => msg === "request.failed")).toHaveLength(1);
});

test("answers a request that arrived while the process was blocked for longer than a client may be silent", async () => {
  const { container, port } = await serving({ headersTimeoutMs: 1_000 });
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await expect.poll(() => countConnections(container.http)).toBe(1);
  const answered = once(socket, "data");
  // After the process has read, and before it checks for late clients and reads again.
  setImmediate(() => {
    socket.write(ask("/text", "p1"));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
  });
  const [answer] = await Promise.race([answered, once(socket, "close")]);
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
});

test("an incomplete request head does not hold up the drain, on a new connection or a used one", async () => {
  const { container, runtime, port } = await serving();
  const half = exchange(port, "GET /text HT");
  const used = Promise.withResolvers<void>();
  const second = exchange(port, ask("/text", "p1"), (socket) => {
    socket.once("data", () => socket.write("GET /text HT", () => used.resolve()));
  });
  await used.promise;
  await expect.poll(() => countConnections(container.http)).toBe(2);
  const drained = ended(runtime, container, { lingerMs: 3_000, drainMs: 30_000, totalMs: 60_000 });

  expect(await half).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*malformed_request/);
  expect(await second).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 408 /);
  expect(await drained).toBe(0);
});

test("answers 504 to an incomplete body shortly before the drain ends, instead of cutting it off", async () => {
  const { container, runtime, port, logs } = await serving();
  const answer = exchange(
    port,
    "POST /size HTTP/1.1\r\nhost: x\r\nx-request-id: half\r\ncontent-length: 9\r\n\r\nabc",
  );
  await expect.poll(() => container.drain.underWay().count).toBe(1);

  expect(await ended(runtime, container, { lingerMs: 0, drainMs: 5_000, totalMs: 60_000 })).toBe(0);
  expect(await answer).toMatch(
    /^HTTP\/1\.1 504 [\s\S]*connection: close[\s\S]*x-request-id: half[\s\S]*"error":"timeout"/i,
  );
  expect(logs).toContainEqual(expect.objectContaining({ msg: "shutdown.completed", cutOff: [] }));
});

test("closes resources last first; one that throws or hangs is named and does not stop the rest", async () => {
  const closed: string[] = [];
  const failing = async (register: (server: ReturnType<typeof buildServer>) => void) => {
    const server = buildServer({ features: [] });
    const logs: Record<string, unknown>[] = [];
    server.onClose("first", () => void closed.push("first"));
    register(server);
    const runtime: Runtime = createRuntime(server, {
      variables: {},
      write: (line) => void logs.push(JSON.parse(line)),
      openAdapters: () => Promise.reject(new Error("unused")),
    });
    return { isClean: await closeResources(runtime, 400), logs };
  };

  expect(await failing((server) => server.onClose("last", () => void closed.push("last")))).toEqual(
    { isClean: true, logs: [] },
  );
  expect(closed).toEqual(["last", "first"]);
  const broken = await failing((server) => {
    server.onClose("hangs", () => new Promise(() => {}));
    server.onClose("throws", () => {
      throw "no error at all";
    });
  });
  expect(broken.isClean).toBe(false);
  expect(broken.logs).toMatchObject([
    { msg: "shutdown.close_failed", resource: "throws", message: "no error at all" },
    {
      msg: "shutdown.close_failed",
      resource: "hangs",
      message: expect.stringMatching(/^it took longer than 1\d\d ms$/),
    },
  ]);
  expect(closed).toEqual(["last", "first", "first"]);
});

test("A clock that is set back while resources close gives none of them more time", async () => {
  const server = buildServer({ features: [] });
  const runtime = createRuntime(server, {
    variables: {},
    write: () => {},
    openAdapters: () => Promise.reject(new Error("unused")),
  });
  const { now } = Date;
  server.onClose("hangs", () => new Promise(() => {}));
  server.onClose("steps", () => {
    const stepped = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
    onTestFinished(() => stepped.mockRestore());
  });

  expect(await closeResources(runtime, 100)).toBe(false);
});

function countConnections(http: HttpServer): Promise<number> {
  return new Promise((resolve) => http.getConnections((_error, count) => resolve(count)));
}

test("sends nosniff with a handler's response, an error's and a refused connection's", async () => {
  const { get, port } = await serving();

  for (const path of ["/text", "/nowhere"]) {
    expect((await get(path)).headers.get("x-content-type-options")).toBe("nosniff");
  }
  expect(await exchange(port, "GARBAGE\r\n\r\n")).toMatch(/x-content-type-options: nosniff/);
});
