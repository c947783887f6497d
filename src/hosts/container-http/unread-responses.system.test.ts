// One process each, with a heap that is too small for what its clients ask for and do not read.
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { get as getTls } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import {
  cert,
  closeAll,
  mebibyte,
  rawClient,
  serveBounded,
} from "../../../test/fixtures/bounded-server.ts";
import { type StartedProcess, signalGroup, startProcess } from "../../../test/support/process.ts";

const heapMb = 96;
const ends: (() => void)[] = [];
afterEach(() => {
  closeAll();
  for (const end of ends.splice(0)) end();
});

async function start(...parameters: string[]): Promise<StartedProcess> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-unread-"));
  const script = join(import.meta.dirname, "../../../test/fixtures/unread.ts");
  const env = { NODE_ENV: "test", KEELSON_DIRECTORY: directory };
  const started = await startProcess(
    process.execPath,
    [`--max-old-space-size=${heapMb}`, script, ...parameters],
    env,
  );
  ends.push(() => {
    signalGroup(started, "SIGKILL");
    rmSync(directory, { recursive: true, maxRetries: 20 });
  });
  return started;
}

/** Clients that send all at once and read nothing. */
function deafClients(port: number, count: number, text: string): void {
  for (let client = 0; client < count; client += 1) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.pause();
    socket.write(text);
    ends.push(() => void socket.destroy());
  }
}

/** What an ordinary client gets, ten times one after the other. */
async function ordinary(
  port: number,
  ask: typeof get,
  more: object = {},
): Promise<(number | undefined)[]> {
  const statuses: (number | undefined)[] = [];
  for (let times = 0; times < 10; times += 1) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const options = { port, host: "localhost", family: 4, path: "/small", agent: false, ...more };
      const asking = ask(options, (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      });
      asking.once("error", reject);
    });
    statuses.push(status);
  }
  return statuses;
}

const ten200 = Array(10).fill(200);
const pipelined = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(100);

test.each([
  ["100 requests of 256 KiB each", 60, pipelined("/large")],
  ["100 requests that are answered at the same time", 60, pipelined("/late")],
  ["64 KiB of the shortest requests", 20, "GET / HTTP/1.1\r\n\r\n".repeat(3_640)],
])(
  "survives clients that pipeline and read nothing, and answers others: %s",
  async (_name, clients, text) => {
    const { port, child, exited } = await start();
    deafClients(port, clients, text);
    const statuses = await Promise.race([ordinary(port, get), exited]);

    expect(statuses).toEqual(ten200);
    expect(child.exitCode).toBeNull();
  },
);

test.each(["/large", "/late"])(
  "survives HTTP/2 clients whose windows stay closed, and answers others: %s",
  async (path) => {
    const { port, child, exited } = await start("tls");
    for (let client = 0; client < 30; client += 1) {
      const session = connectHttp2(`https://localhost:${port}`, {
        ca: cert,
        settings: { initialWindowSize: 0 },
      });
      session.on("error", () => {});
      session.once("connect", () => {
        for (let request = 0; request < 100; request += 1)
          session.request({ ":path": path }).on("error", () => {});
      });
      ends.push(() => session.destroy());
    }
    const statuses = await Promise.race([
      ordinary(port, getTls, { ca: cert, ALPNProtocols: ["http/1.1"] }),
      exited,
    ]);

    expect(statuses).toEqual(ten200);
    expect(child.exitCode).toBeNull();
  },
);

test("cuts clients that hold too much, logs one line with their number, and releases their bytes", async () => {
  const limits = { bodyBytes: mebibyte, unreadBytes: 20 * mebibyte };
  const { port, said, container } = await serveBounded({}, limits);
  const clients = await Promise.all(Array.from({ length: 6 }, () => rawClient(port)));
  for (const { socket } of clients) {
    socket.pause();
    socket.write("GET /mebibyte HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100));
  }
  await expect.poll(() => said("server.connections_cut").length).toBeGreaterThan(0);
  expect(container.unread.heldBytes).toBeLessThanOrEqual(limits.unreadBytes);
  expect(said("server.connections_cut")[0]).toMatchObject({
    level: "warn",
    count: 1,
    unreadBytes: limits.unreadBytes,
  });
  expect(await (await fetch(`http://127.0.0.1:${port}/text`)).json()).toEqual({ text: "text" });
  for (const { socket } of clients) socket.destroy();
  await expect.poll(() => container.drain.underWay().count).toBe(0);

  expect(container.unread.heldBytes).toBe(0);
  expect(said("response.cut_off")).toEqual([]);
});

test("answers all pipelined requests of clients that read, even beyond the limit for all", async () => {
  const { port, said } = await serveBounded({}, { bodyBytes: mebibyte, unreadBytes: 8 * mebibyte });
  const requests = "GET /text HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
  const clients = await Promise.all(Array.from({ length: 20 }, () => rawClient(port, requests)));
  const answers = () => clients.map(({ got }) => got().split('{"text":"text"}').length - 1);
  await expect.poll(answers, { timeout: 120_000, interval: 500 }).toEqual(clients.map(() => 1_000));

  expect(said("server.connections_cut")).toEqual([]);
});

test("counts waiting requests too: cuts the client that sends most, and answers others", async () => {
  const { port, container, probe, said } = await serveBounded(
    {},
    { bodyBytes: mebibyte, unreadBytes: mebibyte },
  );
  const send = (count: number) =>
    rawClient(port, "GET /held/a HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count));
  const large = await send(513); // the first costs nothing, and 512 of 2 KiB are the limit
  await expect.poll(() => container.drain.underWay().count).toBe(513);
  const kept = await send(300);
  await large.closed;
  probe.letGo();
  await expect.poll(() => kept.got().match(/{"name":"a"}/g)?.length).toBe(300);
  const greedy = await send(1_500);
  await greedy.closed;

  expect(said("server.connections_cut")).toHaveLength(1); // the second is counted, and told later
  await expect.poll(() => container.unread.heldBytes).toBe(0);
});

test("pipelined streams wait their turn, and are cancelled when their client leaves", async () => {
  const { port, container, connections, probe, logs } = await serveBounded();
  const client = await rawClient(
    port,
    `GET /held/a HTTP/1.1\r\nhost: x\r\n\r\n${"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3)}`,
  );
  await expect.poll(() => container.unread.heldBytes).toBeGreaterThan(3 * mebibyte);
  client.socket.destroy();
  probe.letGo();

  await expect.poll(() => probe.cancelled).toBe(3);
  await expect.poll(() => connections.known.size).toBe(0);
  expect(container.unread.heldBytes).toBe(0);
  expect(logs.filter(({ level }) => level === "error")).toEqual([]);
});
