import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { freePort } from "../support/free-port.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const fixture = join(import.meta.dirname, "../fixtures/sockets.ts");
const cert = readFileSync(new URL("../fixtures/tls/localhost-cert.pem", import.meta.url));
const running: { process: StartedProcess; directory: string }[] = [];
const open: { destroy(): void }[] = [];

async function end(): Promise<void> {
  for (const connection of open.splice(0)) connection.destroy();
  for (const { process, directory } of running.splice(0)) {
    signalGroup(process, "SIGKILL");
    await process.exited;
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
}

/** Whether the container runs as a Web Function (`npm run test:fronts`). */
const isWebFunction = process.env["KEELSON_TEST_FRONT"] === "web";
let stack: EmbeddedStack | undefined;

/** A Web Function has no embedded stack of its own. */
async function webFunction() {
  stack ??= await startEmbeddedStack();
  return {
    ...stack.env,
    NODE_ENV: "production",
    AWS_LAMBDA_HTTP_ENDPOINT: `127.0.0.1:${await freePort()}`,
  };
}
afterAll(() => stack?.close());

/** Starts the process with a container's times, in a Web Function too. */
async function start(
  shutdown: Readonly<Record<string, number>>,
  hangs?: "worker" | "check" | "resource",
  tls?: "on",
): Promise<StartedProcess> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-sockets-"));
  const started = await startProcess(process.execPath, [fixture], {
    ...(isWebFunction ? await webFunction() : { NODE_ENV: "development", PORT: "0" }),
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    SHUTDOWN: JSON.stringify({ drainMs: 30_000, totalMs: 40_000, ...shutdown }),
    HANGS: hangs,
    TLS: tls,
  });
  running.push({ process: started, directory });
  return started;
}

/** A connection that does what it is told, and keeps what it gets. */
interface Client {
  send(text: string): void;
  /** Everything that came, as text. */
  got(): string;
  /** How many bytes came. */
  bytes(): number;
  /** Reads no more, until `resume`. */
  pause(): void;
  resume(): void;
  /** Resolves when the connection is closed: to whether it ended in good order. */
  readonly closed: Promise<"ended" | "cut">;
}

async function client({ port }: StartedProcess, text = ""): Promise<Client> {
  const socket = connect(port, "127.0.0.1");
  open.push(socket);
  const chunks: Buffer[] = [];
  let bytes = 0;
  let ended: "ended" | "cut" = "cut";
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (chunks.length < 10) chunks.push(chunk); // of the big answer the beginning will do
  });
  socket.on("end", () => {
    ended = "ended";
  });
  socket.on("error", () => {});
  const closed = new Promise<"ended" | "cut">((resolve) =>
    socket.on("close", () => resolve(ended)),
  );
  await once(socket, "connect");
  if (text !== "") socket.write(text);
  return {
    send: (more) => void socket.write(more),
    got: () => Buffer.concat(chunks).toString("latin1"),
    bytes: () => bytes,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    closed,
  };
}

const ask = (path: string, id = "r1") =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: ${id}\r\n\r\n`;
const halfHead = "GET /text HTTP/1.1\r\nhost: x\r\nx-half: ";
const halfBody = "POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n\r\nabc";
const upgradeTo = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n`;
const bigBytes = 32 * 1_048_576;

/** What a client got, in short: statuses, whether it was told that the connection closes, and how it was closed. */
async function outcome(
  one: Client,
): Promise<readonly [statuses: string, told: number, closed: string]> {
  const closed = await one.closed;
  const got = one.got();
  return [
    [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).join(" "),
    (got.match(/connection: close/gi) ?? []).length,
    closed,
  ];
}

const said = ({ logs }: StartedProcess, msg: string) => logs.filter((line) => line["msg"] === msg);
const until = (condition: () => boolean | Promise<boolean>) =>
  vi.waitUntil(condition, { timeout: 30_000, interval: 10 });
const hears = (one: StartedProcess, msg: string, count = 1) =>
  until(() => said(one, msg).length >= count);
const completed = (one: StartedProcess) => said(one, "shutdown.completed")[0];
const gets = (one: Client, text: string) => until(() => one.got().includes(text));

function isListening({ port }: StartedProcess): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
const stopsListening = (one: StartedProcess) => until(async () => !(await isListening(one)));

/** One connection of each kind, as they are when the signal comes. */
async function openAll(one: StartedProcess, upgradePath: string) {
  const idle = await client(one, ask("/text"));
  await gets(idle, '"text"');
  const unused = await client(one);
  const head = await client(one, halfHead);
  const body = await client(one, halfBody);
  const slow = await client(one, ask("/big"));
  await gets(slow, "200 OK");
  slow.pause();
  const upgraded = await client(one, upgradeTo(upgradePath));
  await gets(upgraded, "101 ");
  return { idle, unused, head, body, slow, upgraded };
}

type Kind = keyof Awaited<ReturnType<typeof openAll>> | "pipelined" | "late upgrade" | "large head";
type Outcomes = Partial<Record<Kind, Awaited<ReturnType<typeof outcome>>>>;

describe("During the linger, requests are served, and their connections close afterwards", () => {
  let outcomes: Outcomes = {};
  let one: StartedProcess;
  let slowBytes = 0;
  let texts: Record<"pipelined" | "upgraded" | "late" | "large", string>;
  beforeAll(async () => {
    one = await start({ lingerMs: 8_000 });
    const { idle, unused, head, body, slow, upgraded } = await openAll(one, "/told");
    const toPipeline = await client(one);
    one.child.kill("SIGTERM");
    await hears(one, "shutdown.started");
    const late = await client(one, upgradeTo("/told"));
    const large = await client(
      one,
      `GET /text HTTP/1.1\r\nhost: x\r\nx-large: ${"x".repeat(20_000)}\r\n\r\n`,
    );
    idle.send(ask("/text"));
    unused.send(ask("/text"));
    head.send("more\r\n\r\n");
    body.send("def");
    slow.resume();
    toPipeline.send(ask("/text", "p1") + ask("/nowhere", "p2") + ask("/text", "p3"));
    outcomes = {
      idle: await outcome(idle),
      unused: await outcome(unused),
      head: await outcome(head),
      body: await outcome(body),
      slow: await outcome(slow),
      pipelined: await outcome(toPipeline),
      upgraded: await outcome(upgraded),
      "late upgrade": await outcome(late),
      "large head": await outcome(large),
    };
    slowBytes = slow.bytes();
    texts = {
      pipelined: toPipeline.got(),
      upgraded: upgraded.got(),
      late: late.got(),
      large: large.got(),
    };
    await one.exited;
  });
  afterAll(end);

  test.each<[Kind, string, readonly [string, number, string]]>([
    ["idle", "that was idle", ["200 200", 1, "ended"]],
    ["unused", "that was never used", ["200", 1, "ended"]],
    ["head", "whose request was half sent", ["200", 1, "ended"]],
    ["body", "whose body was half sent", ["200", 1, "ended"]],
    ["slow", "whose big answer had begun", ["200", 0, "ended"]],
    ["pipelined", "with three requests at once", ["200 404 200", 1, "ended"]],
    ["upgraded", "that was upgraded", ["101", 0, "ended"]],
    ["late upgrade", "that asks for an upgrade only now", ["503", 1, "ended"]],
    ["large head", "with headers that are too large", ["431", 1, "ended"]],
  ])("%s: a connection %s", (kind, _text, expected) => {
    expect(outcomes[kind]).toEqual(expected);
  });

  test("Each pipelined request has its own ID, and refusals are in the uniform body", () => {
    expect([...texts.pipelined.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id)).toEqual([
      "p1",
      "p2",
      "p3",
    ]);
    for (const text of [texts.late, texts.large]) {
      const { requestId } = JSON.parse(text.slice(text.indexOf("{")));
      expect(text).toContain(`x-request-id: ${requestId}`);
    }
  });

  test("The big answer is complete, and the upgraded connection says goodbye", () => {
    expect(slowBytes).toBeGreaterThan(bigBytes);
    expect(texts.upgraded).toContain("draining bye");
  });

  test("Nothing is cut off, and the exit code is 0", async () => {
    expect(completed(one)).toMatchObject({ clean: true, exitCode: 0, cutOff: [] });
    expect(await one.exited).toEqual({ code: 0, signal: null });
  });
});

describe("During the drain, requests in flight finish, and idle connections close", () => {
  let outcomes: Outcomes = {};
  let one: StartedProcess;
  let slowBytes = 0;
  beforeAll(async () => {
    one = await start({ lingerMs: 100 });
    const { idle, unused, head, body, slow, upgraded } = await openAll(one, "/late");
    const pipelined = await client(
      one,
      ask("/late", "p1") + ask("/text", "p2") + ask("/late", "p3"),
    );
    await hears(one, "late.began", 2);
    one.child.kill("SIGTERM");
    await stopsListening(one);
    body.send("def");
    slow.resume();
    outcomes = {
      idle: await outcome(idle),
      unused: await outcome(unused),
      head: await outcome(head),
      body: await outcome(body),
      slow: await outcome(slow),
      pipelined: await outcome(pipelined),
      upgraded: await outcome(upgraded),
    };
    slowBytes = slow.bytes();
    await one.exited;
  });
  afterAll(end);

  test.each<[Kind, string, readonly [string, number, string]]>([
    ["idle", "that is idle is closed", ["200", 0, "ended"]],
    ["unused", "that was never used is closed", ["", 0, "ended"]],
    ["head", "whose request stays half sent is told so", ["408", 1, "ended"]],
    ["body", "whose body comes late is answered", ["200", 1, "ended"]],
    ["slow", "whose big answer had begun gets the rest of it", ["200", 0, "ended"]],
    ["pipelined", "with three requests in flight gets all answers", ["200 200 200", 1, "ended"]],
    ["upgraded", "that was upgraded ends by itself", ["101", 0, "ended"]],
  ])("%s: a connection %s", (kind, _text, expected) => {
    expect(outcomes[kind]).toEqual(expected);
  });

  test("Nothing is cut off, and the exit code is 0", async () => {
    expect(slowBytes).toBeGreaterThan(bigBytes);
    expect(completed(one)).toMatchObject({ clean: true, exitCode: 0, cutOff: [] });
    expect(await one.exited).toEqual({ code: 0, signal: null });
  });
});

describe("When the drain times out, remaining requests are cut off and reported", () => {
  let outcomes: Outcomes = {};
  let one: StartedProcess;
  let upgradedText = "";
  beforeAll(async () => {
    one = await start({ lingerMs: 0, drainMs: 6_000 });
    const { idle, unused, head, body, slow, upgraded } = await openAll(one, "/never");
    const pipelined = await client(one, ask("/text", "p1") + ask("/never", "p2"));
    await hears(one, "never.began");
    one.child.kill("SIGTERM");
    await hears(one, "shutdown.requests_cut_off");
    slow.resume(); // else it would not learn that it was cut
    outcomes = {
      idle: await outcome(idle),
      unused: await outcome(unused),
      head: await outcome(head),
      body: await outcome(body),
      slow: await outcome(slow),
      pipelined: await outcome(pipelined),
      upgraded: await outcome(upgraded),
    };
    upgradedText = upgraded.got();
    await one.exited;
  });
  afterAll(end);

  test.each<[Kind, string, readonly [string, number]]>([
    ["idle", "that is idle is closed", ["200", 0]],
    ["unused", "that was never used is closed", ["", 0]],
    ["head", "whose request stays half sent is told so", ["408", 1]],
    ["body", "whose body does not come is told so before", ["504", 1]],
    ["slow", "that does not read its answer is cut", ["200", 0]],
    ["pipelined", "whose second request is never answered has the first answer", ["200", 0]],
    ["upgraded", "that was upgraded and does not end is cut", ["101", 0]],
  ])("%s: a connection %s", (kind, _text, expected) => {
    expect(outcomes[kind]?.slice(0, 2)).toEqual(expected);
  });

  test("Only the requests that were cut off are counted and named, and the exit code is 1", async () => {
    expect(upgradedText).toContain("draining ");
    expect(said(one, "shutdown.requests_cut_off")).toEqual([
      expect.objectContaining({
        requests: ["GET /big", "GET /never", "GET /never (upgraded)"],
        count: 3,
        upgraded: 1,
      }),
    ]);
    expect(completed(one)).toMatchObject({
      clean: false,
      exitCode: 1,
      cutOff: ["in-flight-drain"],
    });
    expect(await one.exited).toEqual({ code: 1, signal: null });
  });
});

/** A client of HTTP/2 that keeps what it is told. */
async function http2Client({ port }: StartedProcess) {
  const session = connectHttp2(`https://localhost:${port}`, { ca: cert });
  session.on("error", () => {});
  open.push(session);
  let goaways = 0;
  session.on("goaway", () => {
    goaways += 1;
  });
  const closed = new Promise<void>((resolve) => session.on("close", resolve));
  await once(session, "connect");
  /** Resolves to the status and, where it was reset, the code of that. */
  const get = (path: string) =>
    new Promise<string>((resolve) => {
      const stream = session.request({ ":path": path });
      let status = "none";
      stream.on("response", (headers) => {
        status = String(headers[":status"]);
      });
      stream.on("error", () => {});
      stream.on("close", () =>
        resolve(stream.rstCode === 0 ? status : `${status}, reset ${stream.rstCode}`),
      );
      stream.resume();
    });
  return { get, closed, goaways: () => goaways };
}

describe("Over HTTP/2", () => {
  afterEach(end);

  test("During the linger an idle or new session serves one more request, and a busy one is told and finishes", async () => {
    const one = await start({ lingerMs: 8_000 }, undefined, "on");
    const [idle, busy] = [await http2Client(one), await http2Client(one)];
    expect(await idle.get("/text")).toBe("200");
    const inFlight = busy.get("/late");
    await hears(one, "late.began");
    one.child.kill("SIGTERM");
    await until(() => busy.goaways() > 0);
    expect(idle.goaways()).toBe(0);
    const late = await http2Client(one);
    expect(await Promise.all([idle.get("/text"), late.get("/text")])).toEqual(["200", "200"]);
    await Promise.all([idle.closed, late.closed]);
    expect(idle.goaways()).toBeGreaterThan(0);
    expect(await inFlight).toBe("200");
    await busy.closed;
    expect(await one.exited).toEqual({ code: 0, signal: null });
    expect(completed(one)).toMatchObject({ clean: true, cutOff: [] });
    expect(one.text()).toBe("");
  });

  test("During the drain an idle session closes with the listener, and a stream in flight finishes", async () => {
    const one = await start({ lingerMs: 100 }, undefined, "on");
    const [idle, busy] = [await http2Client(one), await http2Client(one)];
    expect(await idle.get("/text")).toBe("200");
    const inFlight = busy.get("/late");
    await hears(one, "late.began");
    one.child.kill("SIGTERM");
    await idle.closed;
    expect(await inFlight).toBe("200");
    expect(await one.exited).toEqual({ code: 0, signal: null });
    expect(completed(one)).toMatchObject({ clean: true, cutOff: [] });
    expect(one.text()).toBe("");
  });

  test("A stuck stream is cut off and named when the drain times out", async () => {
    const one = await start({ lingerMs: 0, drainMs: 1_000 }, undefined, "on");
    const [idle, busy] = [await http2Client(one), await http2Client(one)];
    const stuck = busy.get("/never");
    await hears(one, "never.began");
    one.child.kill("SIGTERM");
    await idle.closed;
    expect(await stuck).toMatch(/^none, reset/);
    expect(await one.exited).toEqual({ code: 1, signal: null });
    expect(said(one, "shutdown.requests_cut_off")).toEqual([
      expect.objectContaining({ requests: ["GET /never"], count: 1, upgraded: 0 }),
    ]);
    expect(completed(one)).toMatchObject({ exitCode: 1, cutOff: ["in-flight-drain"] });
  });
});

describe("A shutdown is bounded", () => {
  afterEach(end);

  /** Sends a second signal. Within 200 ms of the first, which the process has got, it would be taken for an echo. */
  async function signalAgain(one: StartedProcess): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 250));
    one.child.kill("SIGTERM");
    await hears(one, "shutdown.hurried");
  }

  test("Many connections that send headers slowly do not delay the exit", async () => {
    const one = await start({ lingerMs: 300 });
    const dribbling = await Promise.all(
      Array.from({ length: 100 }, () => client(one, "GET /text HTTP/1.1\r\nhost: x\r\nx-slow: ")),
    );
    const dribble = setInterval(() => {
      for (const slow of dribbling) slow.send("x");
    }, 50);
    one.child.kill("SIGTERM");
    const exit = await one.exited.finally(() => clearInterval(dribble));
    expect(exit).toEqual({ code: 0, signal: null });
    expect(completed(one)).toMatchObject({ clean: true, cutOff: [] });
  });

  test.each<
    [
      string,
      number,
      "worker" | "resource" | undefined,
      (one: StartedProcess) => Promise<unknown>,
      string[],
    ]
  >([
    [
      "linger",
      30_000,
      undefined,
      (one) => hears(one, "shutdown.started"),
      ["in-flight-drain", "workers-stopped"],
    ],
    [
      "drain",
      0,
      undefined,
      async (one) => {
        await client(one, ask("/never"));
        await hears(one, "never.began");
        one.child.kill("SIGTERM");
        await stopsListening(one);
      },
      ["in-flight-drain", "workers-stopped"],
    ],
    [
      "stopping of the workers",
      0,
      "worker",
      async (one) => {
        await client(
          one,
          "POST /job HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
        await hears(one, "job.began");
        one.child.kill("SIGTERM");
        await stopsListening(one);
      },
      ["workers-stopped"],
    ],
    [
      "closing of the resources",
      0,
      "resource",
      (one) => hears(one, "hangs.closing"),
      ["resources-closed"],
    ],
  ])(
    "A second signal in the %s skips the remaining waits: the exit code is 1",
    async (_phase, lingerMs, hangs, reach, cutOff) => {
      const one = await start({ lingerMs, totalMs: 120_000 }, hangs);
      const first = reach(one);
      if (lingerMs > 0 || hangs === "resource") one.child.kill("SIGTERM");
      await first;
      await signalAgain(one);
      expect(await one.exited).toEqual({ code: 1, signal: null });
      expect(said(one, "shutdown.hurried")).toHaveLength(1);
      // A second is left to close the resources. A busy machine may need more for the embedded stack.
      const cut = (completed(one)?.["cutOff"] ?? []) as readonly string[]; // safe: as the lifecycle logs it
      const isExpected = (phase: string) => phase !== "resources-closed" || cutOff.includes(phase);
      expect(cut.filter(isExpected)).toEqual(cutOff);
    },
  );

  test("A worker that hangs is abandoned after its time limit, and the exit code is 1", async () => {
    const one = await start({ lingerMs: 0, drainMs: 2_000, totalMs: 12_000 }, "worker");
    await client(
      one,
      "POST /job HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    await hears(one, "job.began");
    one.child.kill("SIGTERM");
    expect(await one.exited).toEqual({ code: 1, signal: null });
    expect(said(one, "shutdown.workers_cut_off")).toHaveLength(1);
    expect(completed(one)).toMatchObject({ exitCode: 1, cutOff: ["workers-stopped"] });
  });

  test("Readiness is answered while draining, even if a check hangs, and does not delay the exit", async () => {
    const one = await start({ lingerMs: 8_000 }, "check");
    one.child.kill("SIGTERM");
    await hears(one, "shutdown.started");
    const ready = await fetch(`http://127.0.0.1:${one.port}/health/ready`);
    expect([ready.status, await ready.json()]).toMatchObject([
      503,
      { status: "unavailable", state: "draining", checks: {} },
    ]);
    expect(await one.exited).toEqual({ code: 0, signal: null });
    expect(completed(one)).toMatchObject({ cutOff: [] });
  });
});
