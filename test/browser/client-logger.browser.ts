import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { buildServer } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { startChromium } from "./chromium.ts";

let app: TestApp;
let pages: Server;
let origin = "";
let browser: Browser;
let page: Page;
let token = "";
let userId = "";
let users = 0;

beforeAll(async () => {
  const script = await bundle();
  // The page comes from another origin than the API, as most do.
  pages = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : '<!doctype html><script src="/client.js"></script>');
  }).listen(0, "127.0.0.1");
  await once(pages, "listening");
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  app = await startTestApp(buildServer({ features: [], cors: { origins: [origin] } }));
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  pages?.close();
  await app?.close();
});

beforeEach(async () => {
  userId = `user-${++users}`;
  const secret = String(app.env["KEELSON_AUTH_SECRET"]);
  token = await signToken({ secret, tenantId: "acme", userId, roles: [] }, app.clock);
  page = await browser.newPage();
  await page.goto(origin);
});
afterEach(() => page.close());

/** The library as a page gets it, under `keelson`. */
async function bundle(): Promise<Uint8Array> {
  const entry = join(import.meta.dirname, "../../src/clients/browser/index.ts");
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "iife",
    globalName: "keelson",
    write: false,
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error("esbuild wrote nothing");
  return output.contents;
}

/** Runs a script in the page, where `log` is a logger with the options given. */
async function run(script: string, options: Record<string, unknown> = {}): Promise<void> {
  const given = JSON.stringify({
    url: `${await endpoint()}/log`,
    token,
    flushAfterMs: 100,
    ...options,
  });
  await page.evaluate(`{ globalThis.log ??= keelson.createClientLogger(${given}); ${script} }`);
}

async function endpoint(): Promise<string> {
  return new URL((await app.fetch("/health/live")).url).origin;
}

const lines = () =>
  app.logs.filter((line) => line["userId"] === userId && line["source"] === "client");
const messages = () => lines().map(({ msg }) => msg);
const soon = { timeout: 60_000, interval: 50 };

test("records arrive as lines of the token's tenant and user", async () => {
  await run(
    'log.child({ view: "cart" }).warn("cart.broken", { items: 3 }); log.info("cart.closed")',
    {
      context: { requestId: "page-1" },
    },
  );
  await expect.poll(messages, soon).toEqual(["cart.broken", "cart.closed"]);
  expect(lines()[0]).toMatchObject({
    level: "warn",
    tenantId: "acme",
    userId,
    source: "client",
    view: "cart",
    items: 3,
    clientRequestId: "page-1",
    clientTime: expect.any(String),
  });
});

test("what waits when the page is left arrives all the same", async () => {
  await run('log.info("last words"); log.error("of this page")', { flushAfterMs: 600_000 });
  await page.goto("about:blank");
  await expect.poll(messages, soon).toEqual(["last words", "of this page"]);
});

test("what waits when the tab is closed arrives all the same", async () => {
  // A page of `browser.newPage` takes its context with it, as if the browser were closed, so requests in flight may be lost.
  const context = await browser.newContext();
  const tab = await context.newPage();
  await page.close();
  page = tab;
  await page.goto(origin);
  await run('log.info("closing")', { flushAfterMs: 600_000 });
  await page.close({ runBeforeUnload: true });
  await expect.poll(messages, soon).toEqual(["closing"]);
  await context.close();
});

test("what is logged offline arrives once the page is online again", async () => {
  await page.context().setOffline(true);
  const failed = page.waitForEvent("requestfailed");
  await run('log.info("in the tunnel")');
  expect((await failed).url()).toBe(`${await endpoint()}/log`);
  expect(messages()).toEqual([]);
  await page.context().setOffline(false);
  await expect.poll(messages, soon).toEqual(["in the tunnel"]);
});

test("uncaught errors and unhandled rejections are captured", async () => {
  const script =
    'setTimeout(() => { throw new RangeError("too far") }); void Promise.reject(new Error("nobody cares"));';
  await run(script, { captureErrors: true });
  await expect
    .poll(() => messages().sort(), soon)
    .toEqual(["uncaught.error", "unhandled.rejection"]);
  const errors = lines().map(
    ({ error }) => error as { name: string; message: string; stack: string },
  );
  expect(errors.map(({ message }) => message).sort()).toEqual(["nobody cares", "too far"]);
  expect(errors.every(({ stack }) => stack.includes("Error"))).toBe(true);
});

test("a full queue drops the oldest, and the server is told how many", async () => {
  await run('for (let n = 0; n < 30; n++) log.info("m" + n)', { maxQueued: 10 });
  await expect.poll(() => messages().length, soon).toBe(11);
  expect(lines()[0]).toMatchObject({ level: "warn", msg: "client_log.dropped", count: 20 });
});

test("more than a user may send at once arrives later, none of it lost", async () => {
  // Six batches: the limit allows five immediately and ten records more each second, so the last one waits for nine seconds.
  await run('for (let n = 0; n < 594; n++) log.info("m" + n)', { maxQueued: 1_000 });
  await expect.poll(() => messages().length, soon).toBe(594);
  // One refusal, since the page could read how long to wait, and did.
  const refusals = app.logs.filter(
    (line) => line["userId"] === userId && line["error"] === "too_many_requests",
  );
  expect(refusals).toHaveLength(1);
});

test("a page of an origin that is not allowed gets nothing through, and does not break", async () => {
  const response = await app.fetch("/log", {
    method: "OPTIONS",
    headers: { origin: "http://elsewhere.example", "access-control-request-method": "POST" },
  });
  expect(response.headers.get("access-control-allow-origin")).toBeNull();
  await page.goto("data:text/html,<title>elsewhere</title>");
  await page.addScriptTag({ content: Buffer.from(await bundle()).toString() });
  const refused = page.waitForEvent("requestfailed");
  await run('log.info("from elsewhere")');
  expect((await refused).url()).toBe(`${await endpoint()}/log`);
  expect(await page.title()).toBe("elsewhere");
  expect(messages()).toEqual([]);
});
