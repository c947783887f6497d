import { access, buildServer, defineFeature, NotFoundError, reply } from "keelson";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";

let runs = 0;
let fails = false;
let held: Promise<void> = Promise.resolve();

const orders = defineFeature("orders", (r) => {
  const table = r.table("orders", { partitionKey: "pk", sortKey: "sk" });
  r.write("order.create", {
    route: "POST /orders",
    access: access.authenticated,
    input: z.object({ item: z.string() }),
    handler: async (ctx, { item }) => {
      runs += 1;
      const id = runs;
      await held;
      if (fails) throw new NotFoundError("item", item);
      return ctx.commit(
        [{ Put: { TableName: table.name, Item: { pk: ctx.user.tenantId, sk: `${id}`, item } } }],
        reply({ id, item }, { status: 201, headers: { location: `/orders/${id}`, "x-made-anew": ctx.requestId } }),
      );
    },
  });
  r.write("order.note", {
    route: "POST /notes",
    access: access.authenticated,
    input: z.object({ text: z.string() }),
    handler: async (_ctx, { text }) => {
      runs += 1;
      await held;
      return { text, run: runs };
    },
  });
  r.write("ping.send", {
    route: "POST /pings",
    access: access.everyone,
    handler: async () => ({ run: ++runs }),
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [orders] }));
});
afterAll(() => app.close());
beforeEach(() => {
  [runs, fails, held] = [0, false, Promise.resolve()];
});

let tenants = 0;
const newCaller = (): Caller => ({ id: "ann", tenantId: `tenant-${++tenants}`, roles: [] });
const send = async (as: Caller | undefined, path: string, body: object, headers: Record<string, string> = {}) => {
  const response = await app.fetch(path, { method: "POST", body, headers, ...(as === undefined ? {} : { as }) });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
};

test("a write that is sent again gets its first answer, and is not done again", async () => {
  const ann = newCaller();
  const first = await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" });
  const again = await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" });
  expect(first.status).toBe(201);
  expect(again).toMatchObject({ status: 201, body: first.body });
  expect(again.headers.get("location")).toBe("/orders/1");
  expect([first.headers.get("idempotent-replayed"), again.headers.get("idempotent-replayed")]).toEqual([null, "true"]);
  expect(again.headers.get("x-made-anew")).toBeNull();
  expect(runs).toBe(1);
});

test("another process has the same answer, and it ends after 300 seconds", async () => {
  const ann = newCaller();
  await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' });
  app.clock.advance(299_000); // this process leaves the last seconds to the store
  const replay = await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' });
  expect(replay.headers.get("idempotent-replayed")).toBe("true");
  app.clock.advance(2_000);
  expect((await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' })).body).toEqual({ text: "a", run: 2 });
});

test("what failed is done again", async () => {
  const ann = newCaller();
  fails = true;
  expect((await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" })).status).toBe(404);
  fails = false;
  expect((await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" })).body["id"]).toBe(2);
});

test("fifty twins at once share a run and two calls", async () => {
  const ann = newCaller();
  const before = { ...app.calls };
  let release = () => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  const twins = Array.from({ length: 50 }, () => send(ann, "/notes", { text: "a" }, { "x-request-id": "r2" }));
  await expect.poll(() => runs).toBe(1);
  release();
  const answers = await Promise.all(twins);
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(runs).toBe(1);
  expect((app.calls["PutItem"] ?? 0) - (before["PutItem"] ?? 0)).toBe(2);
});
