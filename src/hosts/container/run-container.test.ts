// own process: it replaces modules
import { EventEmitter, once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server } from "../../app/server/server.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { startEmbeddedStack } from "../../embedded/stack/index.ts";
import type { ContainerWork, UpgradeHandler } from "../container-http/http-options.ts";
import { runContainer, runContainerIn } from "./run-container.ts";

const workers = vi.hoisted(() => ({ whileStarting: () => {}, stop: () => {} }));
vi.mock("./workers.ts", () => ({
  startWorkers: async () => {
    workers.whileStarting();
    return { stop: () => workers.stop(), finished: async () => {} };
  },
}));

/** How many requests have come to the gate of a Web Function. */
const gate = vi.hoisted(() => ({ waited: 0 }));
vi.mock("../container-http/gate.ts", async (original) => {
  const { createGate } = await original<typeof import("../container-http/gate.ts")>();
  return {
    createGate: () => {
      const made = createGate();
      const opened = () => {
        gate.waited += 1;
        return made.opened();
      };
      return Object.defineProperty(Object.create(made), "opened", { value: opened });
    },
  };
});

const directory = mkdtempSync(join(tmpdir(), "keelson-container-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let lines: Record<string, unknown>[] = [];
beforeEach(() => {
  lines = [];
  workers.whileStarting = () => {};
  workers.stop = vi.fn();
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    lines.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => void vi.restoreAllMocks());
const messages = () => lines.map(({ msg }) => msg);

/** A process of its own, which only notes how it ends. */
function processWith(more: NodeJS.ProcessEnv = {}) {
  const { promise: exited, resolve } = Promise.withResolvers<number>();
  const env = { NODE_ENV: "development", KEELSON_DIRECTORY: directory, ...more };
  return Object.assign(new EventEmitter(), { env, exited, exit: (code: number) => resolve(code) });
}

const server = () =>
  buildServer({ features: [], environment: "development", shutdown: { lingerMs: 0 } });
const local = { port: 0, host: "127.0.0.1" };

test("serves until its caller closes it, and the process goes on", async () => {
  const host = processWith();
  const container = await runContainerIn(host, server(), local);
  expect(lines.at(-1)).toMatchObject({
    msg: "server.started",
    url: `http://localhost:${container.port}`,
    environment: "development",
    adapters: { dynamodb: `embedded (${directory})` },
  });
  expect((await fetch(`http://127.0.0.1:${container.port}/health/live`)).status).toBe(200);
  await container.close();
  expect(messages()).toContain("shutdown.completed");
  expect(host.eventNames()).toEqual([]);
  expect(await Promise.race([host.exited, sleep(10, "goes on")])).toBe("goes on");
});

test("closed twice at once, or after a signal, it finishes its requests, and the signal ends its process", async () => {
  const { promise: finished, resolve: finish } = Promise.withResolvers<object>();
  const began = Promise.withResolvers<void>();
  const slow = defineFeature("slow", (r) => {
    r.query("slow.show", {
      route: "GET /slow",
      access: access.everyone,
      handler: () => {
        began.resolve();
        return finished;
      },
    });
  });
  const host = processWith();
  const container = await runContainerIn(host, buildServer({ features: [slow] }), local);
  const answer = fetch(`http://127.0.0.1:${container.port}/slow`);
  await began.promise;
  const closing = [container.close(), container.close()];
  host.emit("SIGTERM", "SIGTERM");
  closing.push(container.close());
  finish({ isDone: true });
  expect((await answer).status).toBe(200);
  await Promise.all(closing);
  expect(await host.exited).toBe(0);
  expect(lines.at(-1)).toMatchObject({ msg: "shutdown.completed", clean: true, signals: 1 });
});

test("its URL says whether it serves with TLS", async () => {
  const pem = (name: string) =>
    readFileSync(new URL(`../../../test/fixtures/tls/localhost-${name}.pem`, import.meta.url));
  const tls = { key: pem("key"), cert: pem("cert") };
  const container = await runContainerIn(processWith(), server(), { ...local, tls });
  expect(lines.at(-1)).toMatchObject({ url: `https://localhost:${container.port}` });
  await container.close();
});

test.each<[ContainerWork[], string, number]>([
  [["http"], "HTTP/1.1 101 Switching Protocols", 1],
  [["workers"], "HTTP/1.1 404 Not Found", 0],
])(
  "a process that does %j answers a request for an upgrade with %s",
  async (run, status, count) => {
    const upgrade = vi.fn<UpgradeHandler>(
      (_request, socket) => void socket.end(`${status}\r\n\r\n`),
    );
    const container = await runContainerIn(processWith(), server(), { ...local, run, upgrade });
    const socket = connect(container.port, "127.0.0.1");
    socket.write(
      "GET /live HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: echo\r\n\r\n",
    );
    const [answer] = await once(socket, "data");

    expect(String(answer).split("\r\n")[0]).toBe(status);
    expect(upgrade).toHaveBeenCalledTimes(count);
    await container.close();
  },
);

test("a signal drains it, and ends its process", async () => {
  const host = processWith();
  await runContainerIn(host, server(), local);
  host.emit("SIGTERM", "SIGTERM");
  expect(await host.exited).toBe(0);
  expect(messages()).toEqual(expect.arrayContaining(["shutdown.started", "shutdown.completed"]));
});

test.each(["0", "1"])(
  "a signal while the workers start stops them, and nothing is served (KEELSON_WATCH=%s)",
  async (KEELSON_WATCH) => {
    const host = processWith({ KEELSON_WATCH });
    workers.whileStarting = () => void host.emit("SIGTERM", "SIGTERM");
    void runContainerIn(host, server(), local);
    expect(await host.exited).toBe(0);
    expect(workers.stop).toHaveBeenCalled();
    expect(messages().includes("server.started")).toBe(KEELSON_WATCH === "1");
  },
);

test("a process that restarts on changes serves before its workers start", async () => {
  const host = processWith({ KEELSON_WATCH: "1" });
  const atStart: unknown[] = [];
  workers.whileStarting = () => void atStart.push(...messages());
  await (await runContainerIn(host, server(), local)).close();
  expect(atStart).toContain("server.started");
});

test("a signal before it serves, or a failure after one, ends its process with the signal's code", async () => {
  const stopped = processWith();
  const ready = async () => void stopped.emit("SIGTERM", "SIGTERM");
  void runContainerIn(stopped, { ...server(), ready }, local);
  expect(await stopped.exited).toBe(0);
  const failed = processWith();
  const late = async () => {
    failed.emit("SIGTERM", "SIGTERM");
    throw new Error("too late");
  };
  void runContainerIn(failed, { ...server(), ready: late }, local);
  expect(await failed.exited).toBe(0);
  expect(messages()).not.toContain("server.start_failed");
});

const failing = (error: Error): Server => ({
  ...server(),
  ready: () => Promise.reject(error),
});

test.each([
  ["its cause", new FrameworkError("timeout", "for clients", { cause: new Error("the reason") })],
  ["itself", new Error("the reason")],
  ["itself, for lack of a cause", new FrameworkError("timeout", "the reason")],
])("a start that fails is logged with %s, and ends the process with 1", async (_, error) => {
  const host = processWith();
  void runContainerIn(host, failing(error), local);
  expect(await host.exited).toBe(1);
  expect(lines.at(-1)).toMatchObject({ msg: "server.start_failed", message: "the reason" });
  expect(lines.at(-1)).toHaveProperty("stack");
});

test("a port in use is one sentence, without a stack, and no worker starts", async () => {
  const first = await runContainerIn(processWith(), server(), local);
  const host = processWith();
  workers.whileStarting = vi.fn();
  void runContainerIn(host, server(), { ...local, port: first.port });
  expect(await host.exited).toBe(1);
  expect(lines.at(-1)).toMatchObject({ message: expect.stringContaining("is in use") });
  expect(lines.at(-1)).not.toHaveProperty("stack");
  expect(workers.whileStarting).not.toHaveBeenCalled();
  await first.close();
});

test("a worker that cannot start is logged after it listens, and ends the process with 1", async () => {
  const host = processWith();
  workers.whileStarting = () => {
    throw new Error("no such queue");
  };
  void runContainerIn(host, server(), local);
  expect(await host.exited).toBe(1);
  expect(messages().slice(-2)).toEqual(["server.start_failed", "shutdown.completed"]);
  expect(lines.at(-2)).toMatchObject({ message: "no such queue" });
  expect(messages()).not.toContain("server.started");
});

test("a start that fails before there is a runtime is logged like any other", async () => {
  const host = processWith({ KEELSON_AUTH_SECRET: "short" });
  void runContainerIn(host, server(), local);
  expect(await host.exited).toBe(1);
  expect(lines).toMatchObject([
    { msg: "server.start_failed", message: expect.stringMatching(/^KEELSON_AUTH_SECRET/) },
  ]);
});

test("it runs in this process by default", async () => {
  const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
  vi.stubEnv("KEELSON_DIRECTORY", directory);
  vi.stubEnv("KEELSON_AUTH_SECRET", "short");
  void runContainer(server());
  await expect.poll(() => exit.mock.calls).toEqual([[1]]);
  vi.unstubAllEnvs();
});

describe("as a Web Function", () => {
  let stack: Awaited<ReturnType<typeof startEmbeddedStack>>;
  beforeAll(async () => {
    stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  });
  afterAll(() => stack.close());

  const notes = defineFeature("notes", (r) => {
    r.write("note.add", {
      route: "POST /notes",
      access: access.everyone,
      body: "bytes",
      handler: () => "added",
    });
  });
  const limited = () =>
    buildServer({ features: [notes], environment: "test", limits: { bodyBytes: 1 } });

  /** Starts a server whose ready check is `check`. */
  async function webFunction(
    check: () => boolean,
    change: (made: Server) => Server = (same) => same,
  ) {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo; // safe: it listens on a port
    listener.close();
    await once(listener, "close");
    const made = limited();
    made.onReadyCheck("search", check);
    const host = processWith({ ...stack.env, AWS_LAMBDA_HTTP_ENDPOINT: `127.0.0.1:${port}` });
    gate.waited = 0;
    const started = runContainerIn(host, change(made), {});
    const ask = async (headers: Record<string, string> = {}) => {
      for (;;) {
        try {
          return await fetch(`http://127.0.0.1:${port}/nowhere`, { headers });
        } catch {
          // It does not listen yet.
        }
      }
    };
    return { host, started, ask, port };
  }
  const waits = (count: number) => vi.waitFor(() => expect(gate.waited).toBe(count), 30_000);

  test("requests wait for the ready checks, and later ones do not", async () => {
    let isReady = false;
    const { started, ask } = await webFunction(() => isReady);
    const answer = ask();
    await waits(1);
    await vi.waitFor(() => expect(messages()).toContain("health.check_failed"), 30_000);
    expect(messages()).not.toContain("server.started");
    isReady = true;
    expect((await answer).status).toBe(404);
    const container = await started;
    expect(lines.find(({ msg }) => msg === "server.started")).toMatchObject({
      host: "web-function",
      port: container.port,
    });
    expect((await ask()).status).toBe(404);
    expect(gate.waited).toBe(1);
    await container.close();
  });

  test("requests that wait when the process must stop get 503, and it exits with 0", async () => {
    const { host, ask } = await webFunction(() => false);
    const answer = ask();
    await waits(1);
    await vi.waitFor(() => expect(messages()).toContain("health.check_failed"), 30_000);
    host.emit("SIGTERM", "SIGTERM");
    const { status, headers } = await answer;
    expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await host.exited).toBe(0);
    expect(messages()).not.toContain("server.started");
  });

  test("a start that fails after it listens answers the requests that wait, and exits with 1", async () => {
    const opening = Promise.withResolvers<void>();
    const { host, ask } = await webFunction(
      () => true,
      (made) => ({ ...made, ready: () => opening.promise }),
    );
    const answer = ask();
    await waits(1);
    opening.reject(new Error("the reason"));
    expect((await answer).status).toBe(503);
    expect(await host.exited).toBe(1);
    expect(messages()).toEqual(
      expect.arrayContaining(["server.start_failed", "shutdown.completed"]),
    );
  });

  test("a request's lines have Lambda's ID, if it looks like one", async () => {
    const { started, ask } = await webFunction(() => true);
    const container = await started;
    await ask({ "lambda-web-request-id": "9f-1", "x-request-id": "one" });
    await ask({ "lambda-web-request-id": "<script>", "x-request-id": "two" });
    const idOf = (requestId: string) =>
      lines.find((line) => line["requestId"] === requestId)?.["platformRequestId"];
    expect([idOf("one"), idOf("two")]).toEqual(["9f-1", undefined]);
    await container.close();
  });

  test("a large body that is refused is read to its end, and its connection serves the next request", async () => {
    const { started, port } = await webFunction(() => true);
    const container = await started;
    const socket = connect(port, "127.0.0.1");
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString();
    });
    const bytes = 300_000;
    socket.write(
      `POST /notes HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\ncontent-length: ${bytes}\r\n\r\n`,
    );
    await vi.waitFor(() => expect(got).toContain("413"), 30_000);
    socket.write("x".repeat(bytes));
    socket.write("GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n");
    await vi.waitFor(() => expect(got).toContain('{"status":"live"}'), 30_000);
    expect(got).not.toContain("connection: close");
    socket.destroy();
    await container.close();
  });
});
