import { buildServer, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { signedHeaders, slack } from "keelson/webhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const verify = slack({ secret: "8f742231b10e8888abcd99yyyzzz85a5" });
const kinds = ["json", "value", "form", "multipart", "text", "bytes"] as const;

let runs = 0;
const chat = defineFeature("chat", (r) => {
  for (const body of kinds)
    r.webhook(`${body}.received`, {
      route: `POST /hooks/${body}`,
      body,
      verify,
      tenant: () => "acme",
      handler: () => void runs++,
    });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [chat] }));
});
afterAll(() => app.close());

async function send(kind: string, body: string, type = "application/json") {
  const timestampSeconds = Math.floor(app.clock.now() / 1_000);
  const signed = await signedHeaders(verify, body, { timestampSeconds });
  const headers = { "content-type": type, ...signed };
  const response = await app.fetch(`/hooks/${kind}`, { method: "POST", body, headers });
  return { status: response.status, text: await response.text() };
}

const check = { token: "Jhj5dZrVaK7ZwHHjRyZWjbDl", challenge: "3eZb", type: "url_verification" };

describe.each(kinds)("Slack's check of an address, at a webhook whose body is %s,", (kind) => {
  test("gets its challenge back, and is no event", async () => {
    const before = runs;
    const { status, text } = await send(kind, JSON.stringify(check));
    expect([status, JSON.parse(text)]).toEqual([200, { challenge: "3eZb" }]);
    expect(runs).toBe(before);
  });
});

test.each([
  ["another type", "text", JSON.stringify({ ...check, type: "event_callback" })],
  ["no text as its challenge", "json", JSON.stringify({ ...check, challenge: { a: 1 } })],
  ["more bytes than a check has", "json", JSON.stringify({ ...check, more: "a".repeat(5_000) })],
  ["a list as its body", "value", "[]"],
  ["`null` as its body", "value", "null"],
])("a body with %s is an event", async (_what, kind, body) => {
  const before = runs;
  const type = kind === "text" ? "text/plain" : "application/json";
  expect((await send(kind, body, type)).status).toBe(204);
  expect(runs).toBe(before + 1);
});

test("a command of Slack, which is a form, is an event", async () => {
  const before = runs;
  const type = "application/x-www-form-urlencoded";
  expect((await send("form", "command=%2Fweather", type)).status).toBe(204);
  expect(runs).toBe(before + 1);
});
