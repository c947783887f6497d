import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { defineFeature } from "../app/feature.ts";
import { createRuntime, type Runtime } from "../app/runtime.ts";
import { buildServer } from "../app/server.ts";
import { reply } from "../http/reply.ts";
import { access } from "../identity/access.ts";
import { createHttpServer } from "./http-server.ts";
import { closeResources, drain } from "./shutdown.ts";

const open: HttpServer[] = [];

afterEach(() => {
  for (const http of open.splice(0)) {
    http.closeAllConnections();
    http.close();
  }
});

const probe = defineFeature("probe", (r) => {
  r.query("time.wait", {
    route: "GET /wait",
    access: access.everyone,
    handler: (ctx) => new Promise((_, reject) => ctx.signal?.addEventListener("abort", () => reject(ctx.signal?.reason))),
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
  r.query("stream.show", {
    route: "GET /stream",
    access: access.everyone,
    handler: async () => reply(new Response("streamed").body, { headers: { "content-type": "text/plain" } }),
  });
  const failing = () => new ReadableStream({ pull: (controller) => controller.error(new Error("the source failed")) });
  r.query("stream.failing", {
    route: "GET /failing",
    access: access.everyone,
    handler: async () => reply(failing(), { headers: { "content-type": "text/plain" } }),
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

async function serving(options: Parameters<typeof createHttpServer>[1] = {}) {
  const server = buildServer({ features: [probe], limits: { bodyBytes: 1_000 } });
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: {},
    write: (line) => void logs.push(JSON.parse(line)),
    openAdapters: async () => ({
      database: {} as never,
      configRows: { read: async () => [] },
      configStore: {} as never,
      close: async () => {},
    }),
  });
  const http = createHttpServer(runtime, options);
  open.push(http);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  return {
    server,
    runtime,
    http,
    logs,
    port,
    get: (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init),
  };
}

/** Sends text as it is and resolves to everything that comes back. */
function exchange(port: number, text: string, then?: (socket: ReturnType<typeof connect>) => void): Promise<string> {
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

test("text, streams and cookies go out; HEAD has the headers only", async () => {
  const { get } = await serving();

  expect(await (await get("/text")).text()).toBe("text");
  expect(await (await get("/stream")).text()).toBe("streamed");
  expect((await get("/cookie", { method: "POST" })).headers.getSetCookie()).toHaveLength(2);
  const head = await get("/text", { method: "HEAD" });
  expect([head.headers.get("content-length"), await head.text()]).toEqual(["4", ""]);
});

test("OPTIONS says what is allowed, and a token that is none leaves the caller of an open route anonymous", async () => {
  const { get } = await serving();

  expect((await get("/text", { method: "OPTIONS" })).headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  expect((await get("/text", { headers: { authorization: "Bearer x.y.z" } })).status).toBe(200);
});

test("a body arrives whole, in one chunk or in several, and every request carries a signal", async () => {
  const { get, port } = await serving();
  const head = "POST /size HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";

  expect(await (await get("/size", { method: "POST", body: "abc" })).json()).toEqual({ bytes: 3, signal: true });
  expect(await exchange(port, `${head}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n`)).toContain(
    '{"bytes":5,',
  );
  expect(await exchange(port, `${head}content-length: 0\r\n\r\n`)).toContain('{"bytes":0,');
});

test("a body over the limit is 413, announced or not, and its connection is ended", async () => {
  const { port } = await serving();
  const announced = await exchange(port, "POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n");
  const chunked = await exchange(
    port,
    `POST /size HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${"fa\r\n".concat("x".repeat(250), "\r\n").repeat(5)}`,
  );

  for (const answer of [announced, chunked]) {
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/connection: close/i);
    expect(answer).toContain('"error":"payload_too_large"');
  }
});

test("an upload that never ends is ended by the server, also on a route that is not there", async () => {
  const { port } = await serving();
  const upload = (path: string) => {
    let timer: NodeJS.Timeout | undefined;
    return exchange(port, `POST ${path} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`, (socket) => {
      timer = setInterval(() => socket.write(`fa\r\n${"x".repeat(250)}\r\n`), 1);
      socket.once("close", () => clearInterval(timer));
    });
  };

  await expect(upload("/size")).resolves.toMatch(/^(HTTP\/1\.1 413 |$)/);
  await expect(upload("/nowhere")).resolves.toMatch(/^(HTTP\/1\.1 404 |$)/);
});

test("a body that ends early is a malformed request, not an error of the server", async () => {
  const { port, logs } = await serving();
  await exchange(port, "POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc", (socket) => socket.destroySoon());

  await expect
    .poll(() => logs)
    .toContainEqual(expect.objectContaining({ level: "warn", msg: "request.failed", error: "malformed_request" }));
});

test("a target may be absolute, with or without a path", async () => {
  const { port } = await serving();
  const ask = (target: string) => exchange(port, `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);

  expect(await ask("http://example.com/text?a=1")).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask("http://example.com")).toMatch(/^HTTP\/1\.1 404 /);
});

test.each([
  ["what is no HTTP", "nonsense\r\n\r\n", 400],
  ["headers that are too large", `GET / HTTP/1.1\r\nlarge: ${"x".repeat(5_000)}\r\n\r\n`, 431],
])("%s is refused in the uniform body", async (_name, text, status) => {
  const { port, logs } = await serving({ maxHeaderBytes: 4_096 });
  const answer = await exchange(port, text);

  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  const { requestId } = JSON.parse(answer.slice(answer.indexOf("{")));
  expect(answer).toContain(`x-request-id: ${requestId}`);
  expect(logs).toContainEqual(expect.objectContaining({ msg: "request.failed", status, requestId }));
});

test("a connection that was reset is let go without an answer", async () => {
  const { http } = await serving();
  const destroyed: boolean[] = [];
  const socket = { writable: true, destroy: () => void destroyed.push(true) };
  http.emit("clientError", Object.assign(new Error("reset"), { code: "ECONNRESET" }), socket);
  http.emit("clientError", new Error("late"), { ...socket, writable: false });

  expect(destroyed).toEqual([true, true]);
});

test("an error of the parser without a code is a plain 400", async () => {
  const { http } = await serving();
  const written: string[] = [];
  http.emit("clientError", new Error("odd"), { writable: true, end: (text: string) => void written.push(text) });

  expect(written[0]).toMatch(/^HTTP\/1\.1 400 Bad Request/);
});

test("a client that goes away aborts the handler, and that is no error", async () => {
  const { get, logs } = await serving();
  const leaving = new AbortController();
  const asked = get("/wait", { signal: leaving.signal }).catch(() => "gone");
  setTimeout(() => leaving.abort(), 50);

  expect(await asked).toBe("gone");
  await expect
    .poll(() => logs)
    .toContainEqual(expect.objectContaining({ level: "warn", msg: "request.aborted", handler: "probe.time.wait" }));
});

test.each([
  ["/broken", "no error at all"],
  ["/failing", "the source failed"],
])("a stream that breaks is cut off and logged (%s)", async (path, message) => {
  const { get, logs } = await serving();
  const outcome = await get(path)
    .then((response) => response.text())
    .catch(() => "cut off");

  expect(outcome).toBe("cut off");
  await expect.poll(() => logs).toContainEqual(expect.objectContaining({ msg: "response.cut_off", message }));
});

test("draining: every response asks the client to close, and the server ends when none is in flight", async () => {
  const { http, runtime, get } = await serving();
  runtime.lifecycle.state = "draining";

  expect((await get("/text")).headers.get("connection")).toBe("close");
  expect(await drain(runtime, http, { lingerMs: 0, drainMs: 10_000 })).toBe(true);
});

test("what is in flight past its time is cut off, and says so", async () => {
  const { http, runtime, get, logs } = await serving();
  const stuck = get("/wait").catch(() => "cut off");
  await expect.poll(() => new Promise((resolve) => http.getConnections((_error, count) => resolve(count)))).toBe(1);

  expect(await drain(runtime, http, { lingerMs: 5, drainMs: 20 })).toBe(false);
  expect(await stuck).toBe("cut off");
  expect(logs).toContainEqual(expect.objectContaining({ level: "error", msg: "shutdown.requests_cut_off" }));
});

test("resources close last first; one that throws or hangs is named and does not stop the rest", async () => {
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
    return { isClean: await closeResources(runtime, 20), logs };
  };

  expect(await failing((server) => server.onClose("last", () => void closed.push("last")))).toEqual({ isClean: true, logs: [] });
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
    { msg: "shutdown.close_failed", resource: "hangs", message: "it took longer than 20 ms" },
  ]);
  expect(closed).toEqual(["last", "first", "first"]);
});
