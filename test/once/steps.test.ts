import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import {
  access,
  buildServer,
  defineFeature,
  NotFoundError,
  type PipelineContext,
  PipelineError,
  UnknownOutcomeError,
} from "keelson";
import { type Caller, CrashError, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";

declare module "keelson" {
  interface Jobs {
    "shop.order.charge": { order: string };
  }
  interface Events {
    "shop-order.placed": { order: string };
  }
}

let work: (ctx: PipelineContext) => unknown = () => undefined;
/** The keys of the calls of the provider. */
let calls: string[] = [];
const order = z.object({ order: z.string() });
const shop = defineFeature("shop", (r) => {
  const route = (name: string) => ({ route: `POST /${name}`, access: access.everyone });
  const handler = async (ctx: PipelineContext) => work(ctx);
  r.write("order.place", {
    ...route("place"),
    once: { required: true, keepSeconds: 3_600 },
    handler,
  });
  r.write("order.seal", { ...route("seal"), replay: "encrypted", handler });
  r.write("order.any", { ...route("any"), handler });
  r.query("order.look", {
    route: "GET /look",
    access: access.everyone,
    handler: async (ctx) => work(ctx as PipelineContext), // safe: the error of a step is asserted
  });
  r.job("order.charge", { input: order, handler });
  r.event("shop-order.placed", order);
  r.on("shop-order.placed", { name: "charge", handler });
  r.on("shop-order.placed", { name: "count", handler: async () => undefined });
});
const server = buildServer({
  features: [shop],
  keyRing: { parameter: "/shop/key-ring" },
  once: { waitMs: 200 },
});
let app: TestApp;
let keys = 0;
const ann: Caller = { id: "ann", tenantId: "acme" };

beforeAll(async () => {
  app = await startTestApp(server, { environment: "development" });
});
afterAll(() => app.close());
beforeEach(() => {
  calls = [];
});

/** Sends a write as a client does, with a key that its retries have too. */
function client(path = "/place") {
  const headers = { "idempotency-key": `k${++keys}` };
  return async () => {
    const response = await app.fetch(path, { method: "POST", as: ann, headers });
    const text = await response.text();
    return {
      status: response.status,
      body: text === "" ? undefined : (JSON.parse(text) as Record<string, unknown>),
    };
  };
}

const onceTable = () => app.env["KEELSON_TABLE_ONCE"] ?? "keelson-once";

type Call = (key: string) => unknown;
const charge =
  (call: Call = () => ({ id: `ch_${calls.length}` }), ifUnknown?: "refuse" | "retry") =>
  (ctx: PipelineContext) =>
    ctx.step("charge", ifUnknown === undefined ? {} : { ifUnknown }, (key) => {
      calls.push(key);
      return call(key);
    });
const fails = (error: unknown) => () => {
  throw error;
};
const lines = (msg: string) => app.logs.filter((line) => line["msg"] === msg);
const rowOf = async (key: unknown) => {
  const { db } = await app.ctx(ann);
  return (
    await db.send(
      new GetCommand({
        TableName: onceTable(),
        Key: { pk: `step:${key}`, sk: "step" },
        ConsistentRead: true,
      }),
    )
  ).Item;
};

test("a completed step gives its result to later runs without another call", async () => {
  const send = client();
  work = async (ctx) => {
    const charged = await charge()(ctx);
    if (calls.length === 1 && lines("step.given").length === 0)
      throw new Error("the process is out of luck");
    return charged;
  };
  expect((await send()).status).toBe(500);
  expect(await send()).toEqual({ status: 200, body: { id: "ch_1" } });
  expect(calls).toEqual([expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-8/)]);
  expect(await rowOf(calls[0])).toMatchObject({
    ...{
      status: "DONE",
      tenantId: "acme",
      stepName: "charge",
      handler: "shop.order.place",
      isSealed: false,
    },
    requestId: expect.any(String),
    expiration: expect.any(Number),
  });
});

test("a typed error means that nothing was done: the next run calls again, with the same key", async () => {
  const send = client();
  work = charge(fails(new NotFoundError("card", "1")));
  expect((await send()).status).toBe(404);
  expect(await rowOf(calls[0])).toMatchObject({ status: "NOT_DONE" });
  work = charge(fails(new PipelineError("declined", 402)));
  expect((await send()).status).toBe(402);
  work = charge();
  expect(await send()).toEqual({ status: 200, body: { id: "ch_3" } });
  expect(new Set(calls).size).toBe(1);
});

test.each([
  ["an error of another kind", new Error("socket hang up")],
  ["a timeout", Object.assign(new PipelineError("too late", 504, { code: "timeout" }))],
  ["another step's", new UnknownOutcomeError("other", "k")],
])("%s leaves the step unknown: repeats are refused, and logged at error", async (_what, error) => {
  const send = client();
  work = charge(fails(error));
  await send();
  work = charge();
  const before = lines("step.unknown").length;
  expect(await send()).toMatchObject({
    status: 409,
    body: { error: "unknown_outcome", message: expect.stringContaining("charge") },
  });
  expect((await send()).status).toBe(409);
  expect(calls).toHaveLength(1);
  expect(lines("step.unknown").slice(before)).toEqual(
    [1, 2].map(() =>
      expect.objectContaining({
        level: "error",
        step: "charge",
        stepKey: calls[0],
        handler: "shop.order.place",
      }),
    ),
  );
});

test("with retry an unknown step is called again, with the same key", async () => {
  const send = client();
  work = charge(fails(new Error("socket hang up")), "retry");
  expect((await send()).status).toBe(500);
  work = charge(undefined, "retry");
  expect(await send()).toEqual({ status: 200, body: { id: "ch_2" } });
  expect(new Set(calls).size).toBe(1);
});

test("a job with an unknown step goes to the dead-letter queue at once, and the step key belongs to its job alone", async () => {
  work = charge(fails(new Error("socket hang up")));
  await (await app.ctx(ann)).enqueue("shop.order.charge", { order: "1" });
  await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
  expect(calls).toHaveLength(1);
  expect(lines("queue.dead_lettered").at(-1)).toMatchObject({
    job: "shop.order.charge",
    reason: expect.stringContaining(String(calls[0])),
  });

  // The same of a consumer; the other consumer of the event is done.
  await (await app.ctx(ann)).publish("shop-order.placed", { order: "1" });
  await expect(app.settled()).rejects.toThrow("in the dead-letter queue");
  expect(calls).toHaveLength(2);
  expect(new Set(calls).size).toBe(2);
});

test("steps of one run may run concurrently, each with its own key and result", async () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const send = client();
  let fail = true;
  work = async (ctx) => {
    const results = await Promise.all(
      names.map((name) => ctx.step(name, {}, (key) => [name, calls.push(key)])),
    );
    if (fail) throw new Error("out of luck");
    return { results };
  };
  expect((await send()).status).toBe(500);
  fail = false;
  expect(await send()).toMatchObject({ body: { results: names.map((name, n) => [name, n + 1]) } });
  expect(new Set(calls).size).toBe(names.length);
});

test.each([
  [
    "a name that the run has had",
    (ctx: PipelineContext) => charge()(ctx).then(() => charge()(ctx)),
    "has the step charge twice",
  ],
  [
    "a name that is none",
    (ctx: PipelineContext) => ctx.step("a b", {}, () => 1),
    'the name "a b" is not',
  ],
  ["no name", (ctx: PipelineContext) => ctx.step(7 as never, {}, () => 1), "the name 7 is not"],
  [
    "another `ifUnknown`",
    (ctx: PipelineContext) => ctx.step("a", { ifUnknown: "ask" as never }, () => 1),
    '"ask" is neither',
  ],
])("%s is an error", async (_what, given, message) => {
  work = given;
  expect(await client()()).toMatchObject({ status: 500 });
  expect(lines("request.failed").at(-1)).toMatchObject({
    message: expect.stringContaining(message),
  });
});

test("steps are refused without a claim, and in a query", async () => {
  work = charge();
  expect((await app.fetch("/any", { method: "POST", as: ann })).status).toBe(500);
  expect(lines("request.failed").at(-1)).toMatchObject({
    message: expect.stringContaining("nothing claims this run"),
  });
  expect((await app.fetch("/look", { as: ann })).status).toBe(500);
  expect(lines("request.failed").at(-1)).toMatchObject({
    message: expect.stringContaining("ctx.step: a query reads"),
  });
  await expect(charge()(await app.ctx(ann))).rejects.toThrow("nothing claims this run");
  expect(calls).toEqual([]);
});

test("plain JavaScript callers may omit the options", async () => {
  work = (ctx) => ctx.step("charge", undefined as never, () => null);
  expect(await client()()).toEqual({ status: 200, body: null });
});

test("a result is normalised to JSON, even the first time; undefined is a valid result", async () => {
  work = async (ctx) => ({
    date: await ctx.step("date", {}, () => new Date(0)),
    nothing: String(await ctx.step("nothing", {}, () => undefined)),
    large: (await ctx.step("large", {}, () => Buffer.alloc(400_000, "ä€x").toString())).length,
  });
  expect(await client()()).toEqual({
    status: 200,
    body: { date: "1970-01-01T00:00:00.000Z", nothing: "undefined", large: expect.any(Number) },
  });
});

test("a large result is stored, and given to a later run", async () => {
  const send = client();
  const text =
    Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)))
      .toString("hex")
      .repeat(5) + crypto.randomUUID();
  let fail = true;
  work = async (ctx) => {
    const result = await charge(() => ({
      text,
      noise: Buffer.from(crypto.getRandomValues(new Uint8Array(65_000))).toString("base64"),
    }))(ctx);
    if (fail) throw new Error("out of luck");
    return { isSame: (result as { text: string }).text === text };
  };
  await send();
  fail = false;
  expect(await send()).toMatchObject({ body: { isSame: true } });
  expect(calls).toHaveLength(1);
});

test.each([
  ["is too large", () => "x".repeat(1_100_000), "it has 1100002 bytes"],
  ["JSON cannot hold", () => ({ cents: 7n }), "BigInt"],
])(
  "a step whose result %s is done, fails each time with the reason, and is not called again",
  async (_what, result, message) => {
    const send = client();
    work = charge(result);
    for (let n = 0; n < 2; n++) {
      expect((await send()).status).toBe(500);
      expect(lines("request.failed").at(-1)).toMatchObject({
        message: expect.stringContaining(message),
      });
    }
    expect(calls).toHaveLength(1);
  },
);

test("step results are sealed where the write's answer is", async () => {
  const send = client("/seal");
  let fail = true;
  work = async (ctx) => {
    const charged = await charge(() => ({ card: "4242424242424242" }))(ctx);
    if (fail) throw new Error("out of luck");
    return charged;
  };
  await send();
  const row = await rowOf(calls[0]);
  expect(row).toMatchObject({ isSealed: true, keepMs: 1_209_600_000 });
  expect(Buffer.from(row?.["data"] as Uint8Array).toString("latin1")).not.toContain("4242");
  fail = false;
  expect(await send()).toMatchObject({ body: { card: "4242424242424242" } });
  // What belongs to another step does not open here.
  const other = client("/seal");
  fail = true;
  await other();
  const { db } = await app.ctx(ann);
  await db.send(
    new PutCommand({
      TableName: onceTable(),
      Item: { ...(await rowOf(calls[1])), data: row?.["data"] },
    }),
  );
  expect((await other()).status).toBe(503);
});

test("a step is forgotten when its write's key expires", async () => {
  const send = client();
  let fail = true;
  work = async (ctx) => {
    const charged = await charge()(ctx);
    if (fail) throw new Error("out of luck");
    return charged;
  };
  await send();
  app.clock.advance(3_590_000);
  await send();
  expect(calls).toHaveLength(1);
  app.clock.advance(20_000);
  fail = false;
  expect(await send()).toMatchObject({ body: { id: "ch_2" } });
});

test("no step starts without the claim", async () => {
  const send = client();
  work = async (ctx) => {
    // Another run takes over: this one stood still for longer than its lease.
    const held = await rowsOfClaims();
    const { db } = await app.ctx(ann);
    for (const item of held)
      await db.send(
        new PutCommand({ TableName: onceTable(), Item: { ...item, owner: "another" } }),
      );
    return charge()(ctx);
  };
  const answer = await send();
  expect(answer).toMatchObject({ status: 409, body: { error: "request_in_progress" } });
  expect(calls).toEqual([]);
});

async function rowsOfClaims(): Promise<Record<string, unknown>[]> {
  const { db } = await app.ctx(ann);
  const { ScanCommand } = await import("@aws-sdk/lib-dynamodb");
  const { Items = [] } = await db.send(
    new ScanCommand({ TableName: onceTable(), ConsistentRead: true }),
  );
  return Items.filter(({ status }) => status === "INPROGRESS");
}

test("a run that was overtaken during a call does not replace the step of the other run", async () => {
  const send = client();
  work = charge(async (key) => {
    const { db } = await app.ctx(ann);
    await db.send(
      new PutCommand({ TableName: onceTable(), Item: { ...(await rowOf(key)), owner: "another" } }),
    );
    return { id: "late" };
  });
  expect(await send()).toMatchObject({ status: 409, body: { error: "request_in_progress" } });
  expect(await rowOf(calls[0])).toMatchObject({ status: "STARTED", owner: "another" });
  // The same of one that says that nothing was done: its own error counts.
  work = charge(async (key) => {
    const { db } = await app.ctx(ann);
    await db.send(
      new PutCommand({ TableName: onceTable(), Item: { ...(await rowOf(key)), owner: "another" } }),
    );
    throw new NotFoundError("card", "1");
  }, "retry");
  expect((await client()()).status).toBe(404);
});

test("a step that cannot be started is not called; one that cannot be recorded is logged", async () => {
  work = charge();
  for (let n = 1; n <= 3; n++)
    app.faults.before("TransactWriteItems", n).fail("InternalServerError");
  expect((await client()()).status).toBe(500);
  expect(calls).toEqual([]);

  for (let n = 1; n <= 3; n++) app.faults.before("UpdateItem", n).fail("InternalServerError");
  expect(await client()()).toEqual({ status: 200, body: { id: "ch_1" } });
  expect(lines("step.unrecorded").at(-1)).toMatchObject({
    level: "error",
    step: "charge",
    stepKey: calls[0],
  });
});

test("a lost response at the start or end of a step changes nothing", async () => {
  work = charge();
  app.faults.after("TransactWriteItems", 1).loseAnswer();
  app.faults.after("UpdateItem", 1).loseAnswer();
  expect(await client()()).toEqual({ status: 200, body: { id: "ch_1" } });
  expect(calls).toHaveLength(1);
});

test("a process that dies during a step leaves it unknown; one that dies after it has completed it", async () => {
  const leaseMs = 33_000;
  for (const [operation, moment, status, times] of [
    ["TransactWriteItems", "before", 200, 1],
    ["TransactWriteItems", "after", 409, 0],
    ["UpdateItem", "before", 409, 1],
    ["UpdateItem", "after", 200, 1],
  ] as const) {
    calls = [];
    const send = client();
    work = charge();
    app.faults[moment](operation, 1).crash();
    await expect(send()).rejects.toThrow(CrashError);
    app.clock.advance(leaseMs);
    expect([operation, moment, (await send()).status, calls.length]).toEqual([
      operation,
      moment,
      status,
      times,
    ]);
  }
});
