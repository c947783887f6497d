import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Server } from "keelson";
import { lambdaContext, lambdaEvent, startTestApp } from "keelson/testing";
import { expect, onTestFinished, test } from "vitest";
import * as cron from "./cron.ts";
import * as crud from "./crud.ts";
import * as event from "./event.ts";
import * as hello from "./hello.ts";
import * as later from "./later.ts";

const ann = { id: "ann", tenantId: "acme" };
const bob = { id: "bob", tenantId: "other" };

async function start(server: Server) {
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  return app;
}

test.each([
  ["hello", 15],
  ["crud", 66],
  ["event", 20],
  ["cron", 10],
  ["later", 18],
])("%s has at most %i lines, without blank ones, casts and types of names", (name, most) => {
  const text = readFileSync(join(import.meta.dirname, `${name}.ts`), "utf8");

  expect(text.split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(most);
  expect(text).not.toMatch(
    /declare module|\bas [a-z]|<any>|ts-ignore|ts-expect-error|biome-ignore/i,
  );
});

test("hello answers in a container and as a function", async () => {
  const app = await start(hello.server);
  expect(await (await app.fetch("/hello")).json()).toEqual({ text: "hello" });
  const answered = await hello.http(lambdaEvent("httpApi", { path: "/hello" }), lambdaContext());
  expect(answered).toMatchObject({ statusCode: 200, body: '{"text":"hello"}' });
});

test("crud creates once, lists, shows, replaces and deletes the caller's notes alone", async () => {
  const app = await start(crud.server);
  const headers = { "idempotency-key": "k1" };
  const create = () => app.fetch("/notes", { body: { text: "a" }, as: ann, headers });
  const created = await create();
  const { id } = (await created.json()) as { id: string };
  expect(created.status).toBe(201);
  expect(await (await create()).json()).toEqual({ id, text: "a" });
  expect((await app.fetch("/notes", { body: { text: "b" }, as: ann })).status).toBe(400);

  const notesOf = async (as: typeof ann) => (await app.fetch("/notes", { as })).json();
  expect(await notesOf(ann)).toEqual({ items: [{ id, text: "a" }] });
  expect(await notesOf(bob)).toEqual({ items: [] });
  expect((await app.fetch(`/notes/${id}`, { as: bob })).status).toBe(404);
  await app.fetch(`/notes/${id}`, { method: "PUT", body: { text: "c" }, as: ann });
  expect(await (await app.fetch(`/notes/${id}`, { as: ann })).json()).toEqual({ id, text: "c" });
  expect((await app.fetch(`/notes/${id}`, { method: "DELETE", as: ann })).status).toBe(204);
  expect(await notesOf(ann)).toEqual({ items: [] });
});

test("event reaches its consumer once", async () => {
  const app = await start(event.server);
  expect((await app.fetch("/orders", { body: { id: "o1", cents: 5 }, as: ann })).status).toBe(204);
  await app.settled();
  expect(app.logs.filter(({ msg }) => msg === "order.confirmed")).toMatchObject([
    { id: "o1", tenantId: "acme" },
  ]);
});

test("cron fires at its time", async () => {
  const app = await start(cron.server);
  await app.settled();
  app.clock.advance(24 * 3_600_000);
  await app.settled();
  expect(app.logs.filter(({ msg }) => msg === "report.written")).toHaveLength(1);
});

test("later runs its job after three days, and not before", async () => {
  const app = await start(later.server);
  const reminded = () => app.logs.filter(({ msg }) => msg === "invoice.reminded");
  expect((await app.fetch("/invoices/i1/send", { method: "POST", as: ann })).status).toBe(200);
  app.clock.advance(3 * 86_400_000 - 60_000);
  await app.settled();
  expect(reminded()).toEqual([]);
  app.clock.advance(120_000);
  await app.settled();
  expect(reminded()).toMatchObject([{ id: "i1", tenantId: "acme" }]);
});
