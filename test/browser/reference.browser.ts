import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reference } from "../../examples/files/reference.ts";
import { createServer } from "../../examples/files/server.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { startChromium } from "./chromium.ts";

let app: TestApp;
let browser: Browser;

beforeAll(async () => {
  app = await startTestApp(createServer(reference), { environment: "development" });
  browser = await startChromium();
});

afterAll(async () => {
  await browser?.close();
  await app?.close();
});

test("/docs shows the operations of the sample, and asks nobody but its server", async () => {
  const page = await browser.newPage();
  const asked = new Set<string>();
  const refused: string[] = [];
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:") asked.add(origin);
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) refused.push(message.text());
  });
  const { url } = await app.fetch("/health/live");
  await page.goto(new URL("/docs", url).href);
  for (const name of ["File: create", "File: list", "File: show", "File: delete"]) {
    await page.getByText(name).first().waitFor({ state: "attached" });
  }
  await page.waitForLoadState("load");
  expect([...asked]).toEqual([new URL(url).origin]);
  expect(refused).toEqual([]);
  await page.close();
});
