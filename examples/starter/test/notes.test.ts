import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { server } from "../src/server.ts";

const ann = { id: "ann", tenantId: "acme" };
const gil = { id: "gil", tenantId: "globex" };
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(server); // on an embedded stack of its own, in memory
});
afterAll(() => app.close());

test("shows a new note to its tenant only", async () => {
  const created = await app.fetch("/notes", { body: { text: "milk" }, as: ann });
  expect(created.status).toBe(201);
  const path = String(created.headers.get("location"));

  const shown = await app.fetch(path, { as: ann });
  expect(await shown.json()).toEqual({ id: path.slice("/notes/".length), text: "milk" });
  expect((await app.fetch(path, { as: gil })).status).toBe(404);
});

test("creates one note for a retried request", async () => {
  const send = () =>
    app.fetch("/notes", { body: { text: "bread" }, as: ann, headers: { "idempotency-key": "1" } });
  const [first, second] = [await send(), await send()];

  expect(await second.json()).toEqual(await first.json());
  expect(second.headers.get("idempotent-replayed")).toBe("true");
});

test("reminds the author of a note a day later", async () => {
  const created = await app.fetch("/notes", { body: { text: "call Gil" }, as: ann });
  const id = String(created.headers.get("location")).slice("/notes/".length);
  const isReminder = { channel: "log", message: { text: `note ${id} is a day old` } };
  await app.settled();
  expect(app.deliveries).not.toContainEqual(expect.objectContaining(isReminder));

  app.clock.advance(86_400_000);
  await app.settled();
  expect(app.deliveries).toContainEqual(expect.objectContaining(isReminder));
});

test("limits the length of a note by its tenant's configuration", async () => {
  await app.rows.put({
    scope: "tenant",
    tenantId: "globex",
    key: "notes:config:max-length",
    value: 3,
  });

  const refused = await app.fetch("/notes", { body: { text: "milk" }, as: gil });
  expect(refused.status).toBe(422);
  expect(await refused.json()).toMatchObject({
    fields: [{ field: "text", error: "must have at most 3 characters" }],
  });
});
