import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { openSsm } from "../../src/embedded/parameters/ssm.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const running: { process: StartedProcess; directory: string }[] = [];

afterEach(async () => {
  for (const { process, directory } of running.splice(0)) {
    signalGroup(process, "SIGKILL");
    await process.exited;
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
});

async function start(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<StartedProcess> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-container-"));
  const fixture = join(import.meta.dirname, "../fixtures/container.ts");
  const process_ = await startProcess(process.execPath, [fixture], {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    AWS_ENDPOINT_URL: undefined,
    ...env,
  });
  running.push({ process: process_, directory });
  return process_;
}

test("SIGTERM lets a request in flight finish, closes resources in reverse order, and exits with 1 if a close failed", async () => {
  const container = await start();
  const slow = get(container, "/wait/4000");
  await logged(container, "wait.began");
  container.child.kill("SIGTERM");

  expect((await slow).status).toBe(200);
  expect((await container.exited).code).toBe(1);
  const said = container.logs.filter(({ msg }) => msg === "closed").map(({ name }) => name);
  expect(said).toEqual(["last", "first"]);
  expect(container.logs).toContainEqual(
    expect.objectContaining({ level: "error", msg: "shutdown.close_failed", resource: "failing" }),
  );
});

test("SIGINT in development does not linger, and a second signal exits at once", async () => {
  const container = await start();
  const slow = get(container, "/wait/30000").catch(() => "cut off");
  await logged(container, "wait.began");
  container.child.kill("SIGINT");
  await logged(container, "shutdown.started");
  await expect
    .poll(() =>
      get(container, "/health/live").then(
        ({ status }) => status,
        () => "refused",
      ),
    )
    .toBe("refused");
  // At once the same signal again is taken for an echo of the first.
  const insist = setInterval(() => container.child.kill("SIGINT"), 100);

  expect((await container.exited.finally(() => clearInterval(insist))).code).toBe(1);
  expect(await slow).toBe("cut off");
});

test("a client that disconnects aborts ctx.signal, and no error is logged", async () => {
  const container = await start();
  const leaving = new AbortController();
  const request = get(container, "/wait/30000", { signal: leaving.signal }).catch(() => "gone");
  await logged(container, "wait.began");
  leaving.abort();

  expect(await request).toBe("gone");
  await logged(container, "request.aborted");
  expect(container.logs.filter(({ level }) => level === "error")).toEqual([]);
});

test("a failing check makes the service not ready, and is named", async () => {
  const container = await start({ FAILING_CHECK: "1" });
  const response = await get(container, "/health/ready");

  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({
    status: "unavailable",
    state: "running",
    checks: { pool: "failing", fine: "ok" },
  });
});

test.each([
  ["1", 1],
  ["0", 0],
])(
  "debug lines are sampled at the rate of POWERTOOLS_LOGGER_SAMPLE_RATE: %s",
  async (rate, count) => {
    const container = await start({ LOG_LEVEL: "info", POWERTOOLS_LOGGER_SAMPLE_RATE: rate });
    expect((await get(container, "/wait/1")).status).toBe(200);
    await logged(container, "wait.began");
    container.child.kill("SIGTERM");
    await container.exited;
    expect(container.logs.filter(({ msg }) => msg === "wait.asked")).toHaveLength(count);
  },
);

test("streams, cookies and bodies pass through", async () => {
  const container = await start();

  expect(await (await get(container, "/stream")).text()).toBe("streamed");
  expect((await get(container, "/cookie", { method: "POST" })).headers.getSetCookie()).toEqual([
    expect.stringMatching(/^seen=1;/),
  ]);
  const chunked = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(3));
      controller.enqueue(new Uint8Array(4));
      controller.close();
    },
  });
  const init = {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: chunked,
    duplex: "half",
  } as RequestInit;
  expect(await (await get(container, "/size", init)).json()).toEqual({ bytes: 7 });
  const head = await get(container, "/stream", { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("a chunked body over the limit is a 413", async () => {
  const container = await start();
  let sent = 0;
  const endless = new ReadableStream({
    // Far more than the limit; slow enough for the server to end it first.
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      controller.enqueue(new Uint8Array(65_536));
      if (++sent === 10_000) controller.close();
    },
  });
  const init = {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: endless,
    duplex: "half",
  } as RequestInit;
  // The answer may be overtaken by the reset that ends an upload nobody reads.
  const outcome = await get(container, "/size", init).then(
    ({ status }) => status,
    () => "cut off",
  );

  expect([413, "cut off"]).toContain(outcome);
  expect(sent).toBeLessThan(10_000);
  await expect
    .poll(() => container.logs)
    .toContainEqual(expect.objectContaining({ msg: "request.failed", error: "payload_too_large" }));
});

test("a stream that breaks halfway is cut off and logged", async () => {
  const container = await start();
  const outcome = await get(container, "/stream/break")
    .then((response) => response.text())
    .catch(() => "cut off");

  expect(outcome).toBe("cut off");
  await logged(container, "response.cut_off");
});

test.each([
  [
    "headers that are too large",
    `GET / HTTP/1.1\r\nhost: x\r\nlarge: ${"x".repeat(20_000)}\r\n\r\n`,
    431,
  ],
  ["a request that never ends", "GET / HTTP/1.1\r\nhost: x\r\n", 408],
  [
    "a body that ends early",
    "POST /size HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ncontent-length: 9\r\n\r\nabc",
    408,
  ],
  [
    "an absolute target",
    "GET http://example.com/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    200,
  ],
  [
    "an absolute target without a path",
    "GET http://example.com HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    404,
  ],
])("%s is answered, not dropped", async (_name, text, status) => {
  // Other requests have the usual times, or a busy machine would be late with them.
  const hasty = { CONTAINER: JSON.stringify({ headersTimeoutMs: 1_000, requestTimeoutMs: 2_000 }) };
  const container = await start(status === 408 ? hasty : {});

  expect(await exchange(container, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});

test("a client that resets its connection mid-body leaves the server running", async () => {
  const container = await start();
  await new Promise<void>((resolve) => {
    const socket = connect(container.port, "127.0.0.1", () => {
      socket.write(
        "POST /size HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ncontent-length: 9\r\n\r\nabc",
        () => {
          socket.resetAndDestroy();
          resolve();
        },
      );
    });
  });

  expect((await get(container, "/health/live")).status).toBe(200);
});

test.each([
  ["a port that is none", { PORT: "eighty" }, /PORT: \\"eighty\\" is not a port/],
  [
    "a production server without anything to verify tokens",
    { NODE_ENV: "production", NEEDS_IDENTITY: "1" },
    /KEELSON_AUTH_SECRET/,
  ],
  [
    "a store that is not there",
    {
      NODE_ENV: "production",
      AWS_ENDPOINT_URL: "http://127.0.0.1:9",
      AWS_MAX_ATTEMPTS: "1",
      AWS_REGION: "x",
      AWS_ACCESS_KEY_ID: "x",
      AWS_SECRET_ACCESS_KEY: "x",
    },
    /ECONNREFUSED/,
  ],
  [
    "an SSM that is not there",
    { SSM_PATH: "/app", AWS_ENDPOINT_URL_SSM: "http://127.0.0.1:9", AWS_MAX_ATTEMPTS: "1" },
    /SSM parameters below \/app cannot be read.*ECONNREFUSED/,
  ],
])("%s stops the start with exit code 1 and an explanation", async (_name, env, message) => {
  await expect(start(env)).rejects.toThrow(message);
  await expect(start(env)).rejects.toThrow(/exited with 1/);
});

test("a port in use stops the start with exit code 1 and one sentence that gives the fix", async () => {
  const taken = createServer().listen(0);
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo; // safe: it listens on a port, not on a pipe
  try {
    const failure = String(await start({ PORT: String(port) }).catch((error: unknown) => error));

    expect(failure).toMatch(/it exited with 1 before it started: {2}\[\{[^{}]*\}\]$/);
    expect(failure).toContain(
      `"message":"Port ${port} is in use: stop the process that listens on it, or set PORT to another one"`,
    );
    expect(failure).not.toContain('"stack"');
  } finally {
    taken.close();
  }
});

test("a secret that is too short stops the start with exit code 1 and one line that gives the fix", async () => {
  const failure = String(
    await start({ KEELSON_AUTH_SECRET: "hunter2" }).catch((error: unknown) => error),
  );

  // Nothing but one record: no stack of Node's.
  expect(failure).toMatch(/it exited with 1 before it started: {2}\[\{[^{}]*\}\]$/);
  expect(failure).toContain('"msg":"server.start_failed"');
  expect(failure).toContain("below the minimum of 32; set a string of at least 32 random bytes");
  expect(failure).not.toContain("hunter2");
});

test("invalid parameters stop the start with exit code 1 and are all named at once; the server starts once they are fixed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "keelson-container-ssm-"));
  const env = { KEELSON_DIRECTORY: directory, SSM_PATH: "/app" };
  const put = (Name: string) =>
    openSsm({ directory }).call("PutParameter", { Name, Value: "1", Type: "String" });
  try {
    await put("/app/nothing/of-the-kind");
    await put("/app/nor-this");
    await expect(start(env)).rejects.toThrow(
      /2 problems at boot.*\/app\/nor-this.*\/app\/nothing\/of-the-kind/,
    );

    for (const Name of ["/app/nothing/of-the-kind", "/app/nor-this"])
      await openSsm({ directory }).call("DeleteParameter", { Name });
    const container = await start(env);
    expect((await get(container, "/health/ready")).status).toBe(200);
    expect(container.logs.find(({ msg }) => msg === "server.started")).toMatchObject({
      adapters: { ssm: `embedded (${directory})` },
    });
  } finally {
    for (const { process } of running) signalGroup(process, "SIGKILL");
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
});

function get({ port }: StartedProcess, path: string, init?: RequestInit): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, init);
}

async function logged(container: StartedProcess, msg: string): Promise<void> {
  await expect.poll(() => container.logs.map((record) => record["msg"])).toContain(msg);
}

function exchange({ port }: StartedProcess, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}
