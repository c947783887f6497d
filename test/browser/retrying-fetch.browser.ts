import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request as open,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, defineFeature, reply } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { startChromium } from "./chromium.ts";

/** The network's effect on a request. */
type Fate = "passes" | "reset" | "answer lost" | "busy";

const written: string[] = [];
const notes = defineFeature("notes", (r) => {
  r.write("note.write", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ name: z.string() }),
    output: z.object({ name: z.string() }),
    handler: async (_ctx, { name }) => {
      written.push(name);
      return reply({ name }, { status: 201 });
    },
  });
});

let app: TestApp;
let network: Server;
let pages: Server;
let api = "";
let browser: Browser;
let page: Page;
let authorization = "";
let fates: Fate[] = [];
/** The requests that have arrived, without preflights. */
let arrived: { readonly key: unknown; readonly id: unknown; readonly body: string }[] = [];

const portOf = (server: Server) => (server.address() as AddressInfo).port; // safe: it listens on a port

beforeAll(async () => {
  const script = await bundle();
  pages = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : '<!doctype html><script src="/client.js"></script>');
  }).listen(0, "127.0.0.1");
  await once(pages, "listening");
  const origin = `http://127.0.0.1:${portOf(pages)}`;
  app = await startTestApp(buildServer({ features: [notes], cors: { origins: [origin] } }));
  const { port } = new URL((await app.fetch("/health/live")).url);
  network = createServer((request, response) => void pass(request, response, port)).listen(
    0,
    "127.0.0.1",
  );
  await once(network, "listening");
  api = `http://127.0.0.1:${portOf(network)}`;
  authorization = `Bearer ${await app.token({ id: "ann", tenantId: "acme" })}`;
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  network?.closeAllConnections();
  network?.close();
  pages?.close();
  await app?.close();
});

beforeEach(async () => {
  fates = [];
  arrived = [];
  written.length = 0;
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${portOf(pages)}`);
});
afterEach(() => page.close());

/** Forwards a request to the app, unless the test decides otherwise. */
async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  port: string,
): Promise<void> {
  const { method, headers, url: path, socket } = request;
  const body = await buffer(request);
  let fate: Fate = "passes";
  if (method !== "OPTIONS") {
    arrived.push({
      key: headers["idempotency-key"],
      id: headers["x-request-id"],
      body: body.toString(),
    });
    fate = fates.shift() ?? "passes";
  }
  if (fate === "reset") return void socket.resetAndDestroy();
  // One connection each, because Chromium retries a request that is reset on a reused connection.
  response.setHeader("connection", "close");
  if (fate === "busy") {
    response.setHeader("access-control-allow-origin", String(headers.origin));
    response.setHeader("access-control-expose-headers", "Retry-After");
    return void response
      .writeHead(503, { "retry-after": "600", "content-type": "application/json" })
      .end('{"error":"overloaded"}');
  }
  const onward = open({ port, host: "127.0.0.1", method, path, headers }, async (answer) => {
    if (fate === "answer lost") return void socket.resetAndDestroy();
    response
      .writeHead(answer.statusCode ?? 0, { ...answer.headers, connection: "close" })
      .end(await buffer(answer));
  });
  onward.end(body);
}

/** The fetch as a page gets it, with `openapi-fetch`, under `keelson`. */
async function bundle(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: {
      contents:
        'export { retryingFetch } from "./src/clients/fetch/index.ts"; export { default as createClient } from "openapi-fetch";',
      resolveDir: join(import.meta.dirname, "../.."),
    },
    ...{ bundle: true, format: "iife", globalName: "keelson", write: false },
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error("esbuild wrote nothing");
  return output.contents;
}

/** Runs the body of an async function in the page, where `client` is one of `openapi-fetch`. */
function run(body: string): Promise<unknown> {
  const client = `keelson.createClient({ baseUrl: ${JSON.stringify(api)}, fetch: keelson.retryingFetch(), headers: { authorization: ${JSON.stringify(authorization)} } })`;
  return page.evaluate(`(async () => { const client = ${client}; ${body} })()`);
}

test("a write from another origin is done once, whatever the network does to it", async () => {
  fates = ["reset", "answer lost", "answer lost"];

  const answer =
    await run(`const { data, error, response } = await client.POST("/notes", { body: { name: "a" } });
    return { data, error, status: response.status, id: response.headers.get("x-request-id") };`);

  expect(answer).toEqual({ data: { name: "a" }, status: 201, id: arrived[0]?.id });
  expect(arrived).toHaveLength(4);
  expect(new Set(arrived.map((request) => JSON.stringify(request))).size).toBe(1);
  expect(arrived[0]).toEqual({
    key: expect.stringMatching(/^\w{32}$/),
    id: expect.any(String),
    body: '{"name":"a"}',
  });
  expect(written).toEqual(["a"]);
});

test("a page without TLS makes keys too", async () => {
  await run(
    `delete Crypto.prototype.randomUUID; await client.POST("/notes", { body: { name: "b" } });`,
  );

  expect(arrived[0]?.key).toMatch(/^\w{32}$/);
  expect(written).toEqual(["b"]);
});

test("a form is sent again as it was", async () => {
  fates = ["reset"];

  await run(`const form = new FormData(); form.set("file", new Blob(["abc"]), "a.txt");
    await keelson.retryingFetch()(${JSON.stringify(`${api}/notes`)}, { method: "POST", body: form });`);

  expect(arrived).toHaveLength(2);
  expect(arrived[0]?.body).toContain("abc");
  expect(arrived[1]).toEqual(arrived[0]);
});

test("a page can read an error, and what it asks for", async () => {
  fates = ["busy"];

  // Ten minutes are more than a call has, so the page gets the answer immediately.
  const answer =
    await run(`const { error, response } = await client.POST("/notes", { body: { name: "c" } });
    return { error: error.error, after: response.headers.get("retry-after") };`);

  expect(answer).toEqual({ error: "overloaded", after: "600" });
  expect(arrived).toHaveLength(1);
});

test("leaving a view ends the pause of its calls", async () => {
  fates = ["busy"];

  const name = await run(`const leaving = new AbortController();
    const fetch = keelson.retryingFetch({ totalMs: 3_600_000, onRetry: () => setTimeout(() => leaving.abort()) });
    return client.POST("/notes", { body: { name: "d" }, fetch, signal: leaving.signal }).catch(({ name }) => name);`);

  expect(name).toBe("AbortError");
  expect(arrived).toHaveLength(1);
});

test("a server that cannot be reached is a FetchFailedError with the request's ID", async () => {
  fates = ["reset", "reset"];

  const error = await run(`const fetch = keelson.retryingFetch({ attempts: 2 });
    return client.POST("/notes", { body: { name: "e" }, fetch }).catch(({ name, requestId, attempts }) => ({ name, requestId, attempts }));`);

  expect(error).toEqual({ name: "FetchFailedError", requestId: arrived[0]?.id, attempts: 2 });
  expect(arrived).toHaveLength(2);
});
