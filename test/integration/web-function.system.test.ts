// A Web Function as Lambda runs it: its variables, what its front removes and adds, its second after SIGTERM.
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildServer } from "keelson";
import { startTestApp, type TestApp, testToken } from "keelson/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startLoad } from "../load/clients.ts";
import {
  startWebFunction,
  startWebFunctionFront,
  type WebFunctionFront,
  type WebFunctionProcess,
} from "../support/web-function.ts";

const fixture = join(import.meta.dirname, "../fixtures/web-function.ts");
const secret = "a secret of the tests of Web Functions";
const tokens = buildServer({ features: [], auth: { secret } });

let app: TestApp;
let front: WebFunctionFront;
const running = new Set<WebFunctionProcess>();
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
});
afterAll(() => app.close());
afterEach(async () => {
  for (const one of running) await one.stop();
  running.clear();
  await front?.close();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<WebFunctionProcess> {
  const started = await startWebFunction([fixture], {
    ...app.env,
    NODE_ENV: undefined,
    KEELSON_AUTH_SECRET: secret,
    ...env,
  });
  running.add(started);
  return started;
}

async function fronted(env?: Readonly<Record<string, string>>): Promise<WebFunctionProcess> {
  front = await startWebFunctionFront();
  const started = await start(env);
  front.add(started);
  return started;
}

const said = ({ logs }: WebFunctionProcess, msg: string) =>
  logs.filter((line) => line["msg"] === msg);
const hears = (one: WebFunctionProcess, msg: string, count = 1) =>
  expect
    .poll(() => said(one, msg).length, { timeout: 30_000, interval: 10 })
    .toBeGreaterThanOrEqual(count);

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Sends a request through the front, with any header. */
function ask(path: string, { method = "GET", headers = {}, body }: Asked = {}) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }>(
    (resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port: front.port, path, method, headers },
        async (response) => {
          const chunks: Buffer[] = [];
          for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        },
      );
      sent.on("error", reject).end(body);
    },
  );
}

test("It listens where Lambda says, and says what it ignores", async () => {
  const one = await fronted({ PORT: "1", CONTAINER: JSON.stringify({ host: "127.0.0.2" }) });
  expect((await ask("/health/ready")).status).toBe(200);
  await hears(one, "server.started");
  expect(said(one, "server.started")).toMatchObject([{ host: "web-function", port: one.port }]);
  expect(said(one, "server.address_ignored")).toMatchObject([
    { level: "warn", ignored: { port: "1", host: "127.0.0.2" }, address: `127.0.0.1:${one.port}` },
  ]);
});

test.each([
  [{ AWS_LAMBDA_HTTP_ENDPOINT: "8080" }, "AWS_LAMBDA_HTTP_ENDPOINT"],
  [{ CONTAINER: JSON.stringify({ tls: { key: "", cert: "" } }) }, "tls"],
  [{ KEELSON_RUN: "http,workers" }, "run: a Web Function only serves requests"],
])("%j fails the start", async (env, message) => {
  const one = await start(env);
  expect(await one.exited).toEqual({ code: 1, signal: null });
  expect(said(one, "server.start_failed")).toMatchObject([
    { message: expect.stringContaining(message) },
  ]);
});

test("In development too, it takes AWS, and neither an embedded stack nor a development secret", async () => {
  const directory = await mkdtemp(join(tmpdir(), "keelson-web-"));
  const env = { NODE_ENV: "development", KEELSON_DIRECTORY: join(directory, "stack") };
  const one = await fronted(env);
  await hears(one, "server.started");
  expect(said(one, "server.started")).toMatchObject([
    { environment: "development", adapters: { dynamodb: app.env["AWS_ENDPOINT_URL"] } },
  ]);
  expect(existsSync(env.KEELSON_DIRECTORY)).toBe(false);
  const alone = await start({ ...env, KEELSON_AUTH_SECRET: "" });
  expect(await alone.exited).toEqual({ code: 1, signal: null });
  expect(said(alone, "server.start_failed")).toMatchObject([
    { message: expect.stringContaining("the server cannot verify tokens") },
  ]);
  await rm(directory, { recursive: true });
});

test("Requests wait until the server is ready", async () => {
  const directory = await mkdtemp(join(tmpdir(), "keelson-web-"));
  const ready = join(directory, "ready");
  const one = await fronted({ READY_FILE: ready });
  const answers = Promise.all([ask("/work/1"), ask("/request"), ask("/health/live")]);
  await hears(one, "health.check_failed");
  await writeFile(ready, "");
  expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
  await rm(directory, { recursive: true });
  expect(said(one, "health.check_failed")).toHaveLength(1);
  expect(said(one, "server.started")).toHaveLength(1);
});

test("Requests that wait for 10 s get 503", async () => {
  await fronted({ READY_FILE: "/nowhere/ready" });
  const { status, headers, text } = await ask("/work/1");
  expect([status, headers["retry-after"]]).toEqual([503, "1"]);
  expect(JSON.parse(text)).toMatchObject({ message: "The service is starting" });
});

test("A start that fails after it listens answers who waits, and exits with 1", async () => {
  const one = await fronted({ AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:1" });
  const { status } = await ask("/work/1");
  expect([502, 503]).toContain(status);
  expect(await one.exited).toEqual({ code: 1, signal: null });
  expect(said(one, "server.start_failed")).toHaveLength(1);
});

test("SIGTERM lets requests finish, and ends the process in time although a resource hangs", async () => {
  const one = await fronted({ HANGS: "resource" });
  await hears(one, "server.started");
  const slow = ask("/work/100"); // the drain has 600 ms
  await hears(one, "work.began");
  front.remove(one);
  running.delete(one);
  expect(await one.stop()).toEqual({ code: 0, signal: null });
  expect((await slow).status).toBe(200);
  expect(said(one, "shutdown.completed")).toMatchObject([{ exitCode: 0 }]);
  expect(said(one, "shutdown.close_failed")).toMatchObject([{ resource: "hangs" }]);
  expect(said(one, "request.completed")).toMatchObject([{ status: 200 }]);
});

test("The client is the last address of all X-Forwarded-For lines, and nothing else that it claims", async () => {
  await fronted();
  const { text } = await ask("/request", {
    headers: {
      "x-forwarded-for": "6.6.6.6",
      "x-real-ip": "6.6.6.7",
      forwarded: "for=6.6.6.8",
      "x-forwarded-host": "evil.example",
      "x-http-method-override": "DELETE",
    },
  });
  expect(JSON.parse(text)).toMatchObject({
    ip: "127.0.0.1",
    method: "GET",
    headers: { "x-forwarded-for": "6.6.6.6, 127.0.0.1", host: "127.0.0.1" },
  });
});

test("A request's lines have Lambda's ID of it, and no ID that a client claims", async () => {
  const one = await fronted();
  const { headers } = await ask("/work/1", { headers: { "lambda-web-request-id": "claimed" } });
  await hears(one, "request.completed");
  const id = headers["lambda-web-request-id"];
  expect(said(one, "work.began")).toMatchObject([{ platformRequestId: id }]);
  expect(said(one, "request.completed")).toMatchObject([{ platformRequestId: id }]);
});

test.each<[string, string, number, number, { token?: string; "content-type": string }]>([
  ["401, without a token", "/notes", 401, 5, { "content-type": "application/json" }],
  ["413, for its size", "/size", 413, 70, { "content-type": "application/octet-stream" }],
  ["415, for its type", "/notes", 415, 5, { "content-type": "text/csv", token: "yes" }],
])(
  "A request that is refused early gets its answer after its whole body: %s",
  async (_name, path, status, mebibytes, { token, ...headers }) => {
    await fronted({ CONTAINER: "{}" });
    const authorization = `Bearer ${await testToken(tokens, { id: "ann", tenantId: "acme" })}`;
    const body = Buffer.alloc(mebibytes * 1_048_576, "x");
    const answer = await ask(path, {
      method: "POST",
      body,
      headers: { ...headers, ...(token === undefined ? {} : { authorization }) },
    });
    expect(answer.status).toBe(status);
    expect((await ask("/request")).status).toBe(200);
  },
);

test("200 overlapping requests of several tenants keep their IDs apart", async () => {
  const one = await fronted();
  const callers = Array.from({ length: 200 }, (_, number) => ({
    tenantId: `tenant-${number % 7}`,
    id: `user-${number}`,
    requestId: `request-${number}`,
  }));
  await Promise.all(
    callers.map(async ({ requestId, ...caller }, number) => {
      const authorization = `Bearer ${await testToken(tokens, caller)}`;
      const { status, headers, text } = await ask(`/caller/${(number * 13) % 90}`, {
        headers: { authorization, "x-request-id": requestId },
      });
      expect(status).toBe(200);
      expect(headers["x-request-id"]).toBe(requestId);
      expect(JSON.parse(text)).toEqual({ tenantId: caller.tenantId, requestId });
    }),
  );
  await hears(one, "request.completed", 200);
  for (const { tenantId, id: userId, requestId } of callers) {
    const lines = one.logs.filter((line) => line["requestId"] === requestId);
    expect(lines.map(({ msg }) => msg)).toEqual([
      ...["caller.before", "caller.after", "request.completed"],
    ]);
    for (const line of lines) expect(line).toMatchObject({ tenantId, userId });
  }
});

test("Ten drains under load lose none of 5,000 requests each, once they are routed elsewhere", async () => {
  front = await startWebFunctionFront();
  // A busy machine needs more than the 600 ms of a Web Function for all that is in flight.
  const patient = { SHUTDOWN: JSON.stringify({ lingerMs: 0, drainMs: 8_000, totalMs: 9_000 }) };
  let one = await start(patient);
  front.add(one);
  for (let drains = 0; drains < 10; drains++) {
    const next = await start(patient);
    await hears(next, "server.started");
    const load = startLoad({
      clients: 48,
      next: async ({ sent }) => (sent < 5_000 ? front.port : undefined),
      request: (number) => ({ method: "GET", path: `/work/${5 + ((number * 7) % 36)}` }),
    });
    await expect.poll(() => load.tally.sent).toBeGreaterThan(2_500);
    front.add(next);
    front.remove(one);
    running.delete(one);
    expect(await one.stop()).toMatchObject({ code: 0, signal: null });
    await load.ended;
    const { sent, got, lost } = load.tally;
    expect({ got, lost }).toEqual({ got: sent, lost: {} });
    expect(sent).toBeGreaterThanOrEqual(5_000);
    one = next;
  }
});
