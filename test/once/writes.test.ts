import { GetCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  defineFeature,
  NotFoundError,
  type PipelineContext,
  reply,
} from "keelson";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";

let runs = 0;
let fails = false;
let held: Promise<void> = Promise.resolve();

/** How often something was counted. */
let counted = 0;

const orders = defineFeature("orders", (r) => {
  const table = r.table("orders", { partitionKey: "pk", sortKey: "sk", tenant: false });
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
        reply(
          { id, item },
          { status: 201, headers: { location: `/orders/${id}`, "x-made-anew": ctx.requestId } },
        ),
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
  r.write("secret.take", {
    route: "POST /secrets",
    access: access.authenticated,
    replay: "encrypted",
    handler: async () => ({ secret: "hunter2", run: ++runs }),
  });
  r.write("order.twice", {
    route: "POST /twice",
    access: access.authenticated,
    once: false,
    handler: async (ctx) => {
      const pk = `${++runs}`;
      return ctx.commit(
        [
          {
            Put: {
              TableName: table.name,
              Item: { pk, sk: "1" },
              ConditionExpression: "attribute_not_exists(pk)",
            },
          },
        ],
        { run: runs },
      );
    },
  });
  r.write("order.weigh", {
    route: "POST /weights",
    access: access.authenticated,
    handler: async (ctx) => {
      const committed = ctx.commit(
        [{ Put: { TableName: table.name, Item: { pk: ctx.user.tenantId, sk: "weight" } } }],
        7n,
      );
      return committed.catch(async (error: Error) => {
        const { Item } = await ctx.db.send(
          new GetCommand({
            TableName: table.name,
            Key: { pk: ctx.user.tenantId, sk: "weight" },
            ConsistentRead: true,
          }),
        );
        return { problem: error.message, isWritten: Item !== undefined };
      });
    },
  });
  r.write("order.count", {
    route: "POST /counts",
    access: access.authenticated,
    handler: async () => {
      counted += 1;
      return { counted: 7n };
    },
  });
  r.query("order.commit", {
    route: "GET /commit",
    access: access.authenticated,
    handler: async (ctx) => (ctx as PipelineContext).commit([], 1), // safe: its error is asserted
  });
  r.write("order.forget", {
    route: "DELETE /orders/:id",
    access: access.authenticated,
    handler: async () => {
      runs += 1;
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
const send = async (
  as: Caller | undefined,
  path: string,
  body: object,
  headers: Record<string, string> = {},
) => {
  const response = await app.fetch(path, {
    method: "POST",
    body,
    headers,
    ...(as === undefined ? {} : { as }),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
};

test("a write that is sent again gets its first answer, and is not done again", async () => {
  const ann = newCaller();
  const first = await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" });
  const again = await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" });
  expect(first.status).toBe(201);
  expect(again).toMatchObject({ status: 201, body: first.body });
  expect(again.headers.get("location")).toBe("/orders/1");
  expect([
    first.headers.get("idempotent-replayed"),
    again.headers.get("idempotent-replayed"),
  ]).toEqual([null, "true"]);
  expect(again.headers.get("x-made-anew")).toBeNull();
  expect(runs).toBe(1);
});

test("another process gives the same answer, which expires after 300 seconds", async () => {
  const ann = newCaller();
  await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' });
  app.clock.advance(299_000); // this process leaves the last seconds to the store
  const replay = await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' });
  expect(replay.headers.get("idempotent-replayed")).toBe("true");
  app.clock.advance(2_000);
  expect((await send(ann, "/notes", { text: "a" }, { "idempotency-key": '"k 1"' })).body).toEqual({
    text: "a",
    run: 2,
  });
});

test("a failed write is done again", async () => {
  const ann = newCaller();
  fails = true;
  expect((await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" })).status).toBe(404);
  fails = false;
  expect((await send(ann, "/orders", { item: "pen" }, { "x-request-id": "r1" })).body["id"]).toBe(
    2,
  );
});

test("fifty concurrent duplicates share one run and two store calls", async () => {
  const ann = newCaller();
  const before = { ...app.calls };
  let release = () => {};
  held = new Promise((resolve) => {
    release = resolve;
  });
  const duplicates = Array.from({ length: 50 }, () =>
    send(ann, "/notes", { text: "a" }, { "x-request-id": "r2" }),
  );
  await expect.poll(() => runs).toBe(1);
  release();
  const answers = await Promise.all(duplicates);
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(runs).toBe(1);
  expect((app.calls["PutItem"] ?? 0) - (before["PutItem"] ?? 0)).toBe(2);
});

test("an encrypted replay is sealed at rest, and given in the clear", async () => {
  const ann = newCaller();
  const first = await send(ann, "/secrets", {}, { "idempotency-key": "s1" });
  const { db } = await app.ctx(ann);
  const { Items = [] } = await db.send(
    new ScanCommand({
      TableName: app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once",
      ConsistentRead: true,
    }),
  );
  const stored = JSON.stringify(Items, (_name, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value,
  );
  expect(Items.length).toBeGreaterThan(0);
  expect(stored).not.toContain("hunter2");
  app.clock.advance(299_000);
  expect((await send(ann, "/secrets", {}, { "idempotency-key": "s1" })).body).toEqual(first.body);
});

test("a write without a claim commits only its items, and runs each time", async () => {
  const ann = newCaller();
  const headers = { "x-request-id": "same" };
  expect((await send(ann, "/twice", {}, headers)).body).toEqual({ run: 1 });
  expect((await send(ann, "/twice", {}, headers)).body).toEqual({ run: 2 });
  runs = 0;
  expect(await send(ann, "/twice", {}, headers)).toMatchObject({
    status: 409,
    body: { error: "condition_failed" },
  });
});

test("a result that JSON cannot hold fails the commit before anything is sent", async () => {
  const { body } = await send(newCaller(), "/weights", {}, { "x-request-id": "r1" });
  expect(body).toEqual({ problem: expect.stringContaining("BigInt"), isWritten: false });
});

test("a write that succeeded but cannot be answered is not done again: its repeats get its 500", async () => {
  const [as, id] = [newCaller(), { "x-request-id": "r1" }];
  const answers = [];
  for (let n = 0; n < 3; n += 1) {
    const response = await app.fetch("/counts", { method: "POST", body: {}, as, headers: id });
    answers.push([
      response.status,
      response.headers.get("idempotent-replayed"),
      await response.json(),
    ]);
  }

  const body = expect.objectContaining({
    error: "internal_error",
    message: "Internal server error",
    requestId: "r1",
  });
  expect(answers).toEqual([
    [500, null, body],
    [500, "true", body],
    [500, "true", body],
  ]);
  expect(counted).toBe(1);
  const lines = app.logs.filter(
    ({ msg, handler }) => msg === "request.failed" && handler === "orders.order.count",
  );
  expect(lines).toEqual([
    expect.objectContaining({ level: "error", message: expect.stringContaining("BigInt") }),
  ]);
});

test("a query cannot commit", async () => {
  const response = await app.fetch("/commit", { as: newCaller() });
  expect(response.status).toBe(500);
  const failures = app.logs.filter(({ msg }) => msg === "request.failed");
  expect(failures.at(-1)).toMatchObject({
    message: "ctx.commit: a query reads; commit in a write",
  });
});

test("an anonymous caller gets repeats by Idempotency-Key, for the same input only", async () => {
  const ping = async (body: object, headers: Record<string, string>) =>
    (await send(undefined, "/pings", body, headers)).body["run"];
  expect(await ping({ a: 1 }, { "idempotency-key": "p1" })).toBe(1);
  expect(await ping({ a: 1 }, { "idempotency-key": "p1" })).toBe(1);
  expect(await ping({ a: 2 }, { "idempotency-key": "p1" })).toBe(2);
  expect(await ping({ a: 1 }, { "x-request-id": "p2" })).toBe(3);
  expect(await ping({ a: 1 }, { "x-request-id": "p2" })).toBe(4);
});

test("one ID of different tenants, users and handlers is different writes; revoked access refuses the repeat", async () => {
  const [ann, bob] = [newCaller(), newCaller()];
  const headers = { "idempotency-key": "shared" };
  const seen = [];
  for (const as of [ann, bob, { ...ann, id: "ann#" }, { ...ann, tenantId: "tenant", id: "1ann" }]) {
    seen.push((await send(as, "/notes", { text: "a" }, headers)).body["run"]);
  }
  seen.push((await send(ann, "/orders", { item: "a" }, headers)).body["id"]);
  expect(seen).toEqual([1, 2, 3, 4, 5]);
  const refused = await send(undefined, "/notes", { text: "a" }, headers);
  expect(refused).toMatchObject({ status: 401 });
});

test("an invalid Idempotency-Key is a 400, and a used one with another input a 422", async () => {
  const ann = newCaller();
  expect(await send(ann, "/notes", { text: "a" }, { "idempotency-key": "a, b" })).toMatchObject({
    status: 400,
    body: { error: "malformed_request" },
  });
  await send(ann, "/notes", { text: "a" }, { "idempotency-key": "k" });
  expect(await send(ann, "/notes", { text: "b" }, { "idempotency-key": "k" })).toMatchObject({
    status: 422,
    body: { error: "idempotency_key_reused" },
  });
  expect(runs).toBe(1);
});

test("an answer without a body is repeated without one, and app.call gets the same as fetch", async () => {
  const ann = newCaller();
  for (let n = 0; n < 2; n++) {
    const response = await app.fetch("/orders/1", {
      method: "DELETE",
      as: ann,
      headers: { "idempotency-key": "d" },
    });
    expect([response.status, await response.text()]).toEqual([204, ""]);
  }
  expect(runs).toBe(1);
  expect(
    await app.call("orders.order.forget", { id: "2" }, { as: ann, requestId: "r9" }),
  ).toBeUndefined();
  const sent = await send(ann, "/notes", { text: "a" }, { "x-request-id": "r8" });
  expect(await app.call("orders.order.note", { text: "a" }, { as: ann, requestId: "r8" })).toEqual(
    sent.body,
  );
});
