// Chromium's EventSource reads a query with output: sse(…) from two processes, one of which stops.
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type StartedProcess, startProcess } from "../support/process.ts";
import { startChromium } from "./chromium.ts";

const fixture = join(import.meta.dirname, "../fixtures/event-source.ts");
let app: TestApp;
let browser: Browser;
let front: Server;
const processes: StartedProcess[] = [];
let target: StartedProcess;

async function start(): Promise<StartedProcess> {
  const started = await startProcess(process.execPath, [fixture], {
    ...app.env,
    NODE_ENV: "production",
    LOG_FORMAT: "json",
  });
  processes.push(started);
  return started;
}

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [] }));
  target = await start();
  front = createServer((incoming, outgoing) => {
    if (incoming.url === "/") {
      outgoing.setHeader("content-type", "text/html");
      return void outgoing.end("<!doctype html>");
    }
    const { url: path, method, headers } = incoming;
    const passed = request(
      { host: "127.0.0.1", port: target.port, path, method, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.on("error", () => outgoing.destroy()).pipe(outgoing);
      },
    );
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => void passed.destroy());
    incoming.pipe(passed);
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  front?.closeAllConnections();
  front?.close();
  for (const { child, exited } of processes) {
    child.kill("SIGKILL");
    await exited;
  }
  await app?.close();
});

test("an EventSource gets each event once, in order, although the process that sends them stops", async () => {
  const second = await start(); // first, because a process sends all events in a few seconds
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(front.address() as AddressInfo).port}`); // safe: it listens on a port
  await page.evaluate(`
    window.got = [];
    window.opened = 0;
    const source = new EventSource("/numbers");
    source.onopen = () => { window.opened += 1; };
    source.addEventListener("number", ({ data, lastEventId }) => {
      window.got.push({ id: lastEventId, ...JSON.parse(data) });
    });
    window.source = source;
  `);
  const got = () => page.evaluate("window.got") as Promise<{ number: number; process: number }[]>;
  await expect.poll(async () => (await got()).length).toBeGreaterThan(20);

  const first = target;
  target = second;
  first.child.kill("SIGTERM");
  expect(await first.exited).toEqual({ code: 0, signal: null });
  expect(first.logs.filter(({ msg }) => msg === "shutdown.requests_cut_off")).toEqual([]);

  // 2 is `EventSource.CLOSED`: the last connection was answered with 204.
  await expect.poll(() => page.evaluate("window.source.readyState")).toBe(2);
  const events = await got();
  expect(events.map(({ number }) => number)).toEqual(
    Array.from({ length: 150 }, (_, index) => index + 1),
  );
  expect(new Set(events.map(({ process }) => process)).size).toBe(2);
  expect(await page.evaluate("window.opened")).toBe(2);
  await page.close();
});
