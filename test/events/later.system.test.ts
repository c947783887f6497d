import { BatchWriteCommand, GetCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, type PipelineContext, reply } from "keelson";
import { CrashError, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";

const reminder = z.object({ text: z.string() });

declare module "keelson" {
  interface Jobs {
    "reminders.reminder.send": z.input<typeof reminder>;
    "reminders.reminder.again": z.input<typeof reminder>;
    "reminders.reminder.count": z.input<typeof reminder>;
    "reminders.reminder.ordered": z.input<typeof reminder>;
  }
}

/** How long the leases of a dead process last, in milliseconds. */
const leaseMs = 33_000;

let sent: { text: string; atMs: number; tenantId: string | undefined }[] = [];
let work: (ctx: PipelineContext) => unknown = () => undefined;
const reminders = defineFeature("reminders", (r) => {
  const table = r.table("reminders", { partitionKey: "pk", tenant: false });
  const note = async (ctx: PipelineContext, { text }: { text: string }) => {
    sent.push({ text, atMs: app.clock.now(), tenantId: ctx.user.tenantId });
  };
  r.job("reminder.send", { input: reminder, dedupKey: () => "one", handler: note });
  r.job("reminder.ordered", { input: reminder, order: () => "lane", handler: note });
  r.job("reminder.again", {
    input: reminder,
    handler: async (ctx, payload) => {
      await note(ctx, payload);
      if (sent.length < 5)
        await ctx.enqueue("reminders.reminder.again", payload, { delaySeconds: 60 });
    },
  });
  r.job("reminder.count", {
    input: reminder,
    handler: async (ctx, { text }) => {
      const count = {
        UpdateExpression: "ADD #times :one",
        ExpressionAttributeNames: { "#times": "times" },
      };
      const Update = {
        TableName: table.name,
        Key: { pk: text },
        ...count,
        ExpressionAttributeValues: { ":one": 1 },
      };
      await ctx.commit([{ Update }], undefined);
    },
  });
  r.write("reminder.do", {
    route: "POST /do",
    access: access.everyone,
    handler: async (ctx) => work(ctx),
  });
  r.write("reminder.commit", {
    route: "POST /commit",
    access: access.authenticated,
    handler: async (ctx) => {
      const id = await work(ctx);
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: "n" } } }], { id });
    },
  });
  r.query("reminder.look", {
    route: "GET /look",
    access: access.everyone,
    handler: async (ctx) => work(ctx as PipelineContext), // safe: the error of an effect is asserted
  });
});
const server = buildServer({
  features: [reminders],
  messages: { proof: "require" },
  keyRing: { parameter: "/ring" },
});
const [ann, eve] = [
  { id: "ann", tenantId: "acme" },
  { id: "eve", tenantId: "evil" },
];
const name = "reminders.reminder.send";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server, { environment: "development" });
});
afterAll(() => app.close());
beforeEach(async () => {
  sent = [];
  for (const { pk, sk } of await rows()) await remove(pk, sk);
});

const outboxTable = () => app.env["KEELSON_TABLE_OUTBOX"] ?? "keelson-outbox";
const post = (
  path: string,
  as: typeof ann | undefined = ann,
  headers: Record<string, string> = {},
) => app.fetch(path, { body: {}, headers, ...(as === undefined ? {} : { as }) });
const idOf = async (response: Response) => ((await response.json()) as { jobId: string }).jobId;
const texts = () => sent.map(({ text }) => text);
/** A handler that enqueues for later and answers with the ID. */
const later =
  (options: { delaySeconds?: number; at?: Date }, text = "a") =>
  (ctx: PipelineContext) =>
    ctx.enqueue(name, { text }, options);

async function rows(): Promise<{ pk: string; sk: string }[]> {
  const { db } = await app.ctx(ann);
  const { Items = [] } = await db.send(
    new ScanCommand({ TableName: outboxTable(), ConsistentRead: true }),
  );
  return Items as { pk: string; sk: string }[]; // safe: the keys of the table
}

async function remove(pk: string, sk: string): Promise<void> {
  const { db } = await app.ctx(ann);
  await db.send(
    new BatchWriteCommand({
      RequestItems: { [outboxTable()]: [{ DeleteRequest: { Key: { pk, sk } } }] },
    }),
  );
}

test("a delayed job is sent when it is due, and not before", async () => {
  work = later({ delaySeconds: 3 * 86_400 });
  const jobId = await idOf(await post("/do"));
  await app.settled();
  app.clock.advance(3 * 86_400_000 - 60_000);
  await app.settled();
  expect(sent).toEqual([]);

  const dueMs = app.clock.now() + 60_000;
  app.clock.advance(60_000);
  await app.settled();
  expect(sent).toEqual([{ text: "a", atMs: expect.any(Number), tenantId: "acme" }]);
  expect(Number(sent[0]?.atMs)).toBeLessThan(dueMs + 60_000);
  expect(app.jobs.at(-1)).toMatchObject({ jobId, name, payload: { text: "a" } });
  expect(await rows()).toEqual([]);
});

test("a job is sent at a given time, and at once if that time has passed", async () => {
  work = later({ at: new Date(app.clock.now() + 3_600_000) });
  await post("/do");
  work = later({ at: new Date(0) }, "passed");
  await post("/do");
  await app.settled();
  expect(texts()).toEqual(["passed"]);
  app.clock.advance(3_600_000);
  await app.settled();
  expect(texts()).toEqual(["passed", "a"]);
});

test("a delayed job joins the commit: a write that fails enqueues nothing", async () => {
  work = async (ctx) => {
    await later({ delaySeconds: 5 })(ctx);
    throw new Error("too bad");
  };
  expect((await post("/commit")).status).toBe(500);
  work = async (ctx) => {
    await later({ delaySeconds: 5 })(ctx);
    return reply({}, { status: 422 });
  };
  expect((await post("/do")).status).toBe(422);
  expect(await rows()).toEqual([]);

  work = later({ delaySeconds: 5 }, "committed");
  expect((await post("/commit", ann, { "idempotency-key": "c1" })).status).toBe(200);
  expect(
    (await post("/commit", ann, { "idempotency-key": "c1" })).headers.get("idempotent-replayed"),
  ).toBe("true");
  expect(await rows()).toEqual([
    expect.objectContaining({ pk: expect.stringMatching(/^due#[0-7]$/) }),
  ]);
  expect(app.logs.findLast(({ msg }) => msg === "job.scheduled")).toMatchObject({
    job: name,
    scheduledId: expect.any(String),
    dueAt: expect.any(String),
  });
});

test("delayed jobs are refused after the commit, in a query, and for an invalid delay", async () => {
  const lastError = () =>
    String(app.logs.filter(({ msg }) => msg === "request.failed").at(-1)?.["message"]);
  work = async (ctx) => {
    await ctx.commit([], {});
    const error = await ctx
      .enqueue(name, { text: "a" }, { delaySeconds: 1 })
      .catch((thrown: Error) => thrown);
    throw error;
  };
  await post("/do");
  expect(
    app.logs.findLast(({ msg }) => msg === "once.threw_after_commit" || msg === "request.failed"),
  ).toBeDefined();
  expect(await rows()).toEqual([]);
  work = later({ delaySeconds: -1 });
  expect((await post("/do")).status).toBe(500);
  expect(lastError()).toContain("delaySeconds -1");
  work = (ctx) => ctx.cancelJob("x");
  expect((await app.fetch("/look")).status).toBe(500);
  expect(lastError()).toContain("ctx.cancelJob: a query reads");
});

test("a delayed job can be canceled once, by its own tenant, and not after it was sent", async () => {
  const take = async (jobId: string, as = ann) => {
    work = async (ctx) => ({ taken: await ctx.cancelJob(jobId) });
    return ((await (await post("/do", as)).json()) as { taken: boolean }).taken;
  };
  work = later({ delaySeconds: 60 });
  const jobId = await idOf(await post("/do"));
  const anonymous = await idOf(await app.fetch("/do", { body: {} }));

  expect(await take("j1")).toBe(false);
  expect(await take(jobId, eve)).toBe(false);
  expect(await take(anonymous)).toBe(false);
  expect(await take(jobId)).toBe(true);
  expect(await take(jobId)).toBe(false);
  app.clock.advance(60_000);
  await app.settled();
  expect(sent).toEqual([{ text: "a", atMs: expect.any(Number), tenantId: undefined }]);
  expect(await take(anonymous)).toBe(false);
});

test("a job that is being sent cannot be canceled, and is sent again by the next sweep", async () => {
  work = later({ delaySeconds: 60 });
  const jobId = await idOf(await post("/do"));
  app.clock.advance(60_000);
  app.faults.before("SendMessage", 1).fail("ServiceUnavailable");
  const waiting = app.settled();
  await expect.poll(() => app.logs.some(({ msg }) => msg === "job.dispatch_failed")).toBe(true);
  work = async (ctx) => ({ taken: await ctx.cancelJob(jobId) });
  const answer = post("/do");
  await waiting;
  expect(await (await answer).json()).toEqual({ taken: false });
  expect(app.logs.find(({ msg }) => msg === "job.dispatch_failed")).toMatchObject({
    jobs: [`${name} ${jobId}`],
  });
  expect(texts()).toEqual(["a"]);
});

test("a job that is canceled during a sweep is not sent", async () => {
  work = later({ delaySeconds: 60 });
  const jobId = await idOf(await post("/do"));
  app.clock.advance(60_000);
  work = async (ctx) => ({ taken: await ctx.cancelJob(jobId) });
  // The sweep has read the row when it notes that it sends it.
  app.faults.before("UpdateItem", 1).delay(10_000);
  const before = app.calls["PutItem"] ?? 0;
  const settled = app.settled();
  // The sweep claims the shard, reads it, and waits before it notes anything.
  await expect.poll(() => (app.calls["PutItem"] ?? 0) > before).toBe(true);
  expect(await (await post("/do")).json()).toEqual({ taken: true });
  await settled;
  expect(sent).toEqual([]);
});

test("equal delayed jobs are separate jobs, even when one enqueues itself", async () => {
  work = async (ctx) => {
    await ctx.enqueue(name, { text: "same" }, { delaySeconds: 10 });
    await ctx.enqueue(name, { text: "same" }, { delaySeconds: 10 });
    await ctx.enqueue("reminders.reminder.ordered", { text: "ordered" }, { delaySeconds: 10 });
  };
  await post("/do");
  app.clock.advance(10_000);
  await app.settled();
  expect(texts().sort()).toEqual(["ordered", "same", "same"]);

  sent = [];
  await (await app.ctx(ann)).enqueue("reminders.reminder.again", { text: "again" });
  for (let minute = 0; minute < 6; minute++) {
    await app.settled();
    app.clock.advance(60_000);
  }
  expect(texts()).toEqual(["again", "again", "again", "again", "again"]);
});

test("the ctx of a test can schedule and cancelJob jobs", async () => {
  const ctx = await app.ctx(ann);
  const { jobId } = await ctx.enqueue(name, { text: "a" }, { delaySeconds: 5 });
  expect(await rows()).toHaveLength(1);
  expect(await ctx.cancelJob(jobId)).toBe(true);
  expect(await rows()).toEqual([]);
});

test("a sweep does not read jobs that are due in months, and sets aside a row that is no job", async () => {
  const { db } = await app.ctx(ann);
  const due = (sort: number) => `${String(sort).padStart(15, "0")}#x${sort}`;
  const far = Array.from({ length: 500 }, (_, n) => app.clock.now() + 90 * 86_400_000 + n);
  for (let start = 0; start < far.length; start += 25) {
    const puts = far
      .slice(start, start + 25)
      .map((ms) => ({ PutRequest: { Item: { pk: "due#1", sk: due(ms), envelope: "?" } } }));
    await db.send(new BatchWriteCommand({ RequestItems: { [outboxTable()]: puts } }));
  }
  await db.send(
    new PutCommand({
      TableName: outboxTable(),
      Item: { pk: "due#1", sk: due(app.clock.now()), tags: [] },
    }),
  );
  work = later({ delaySeconds: 1 });
  await post("/do");
  app.clock.advance(1_000);
  await expect(app.settled()).rejects.toThrow("1 events were set aside");
  expect(texts()).toEqual(["a"]);
  const left = await rows();
  expect(left.filter(({ pk }) => pk === "due#1")).toHaveLength(500);
  expect(left.filter(({ pk }) => pk === "aside")).toHaveLength(1);
});

test("a row that is set aside is reported, even if every answer to that call is lost", async () => {
  const since = app.logs.length;
  const { db } = await app.ctx(ann);
  const Item = { pk: "due#1", sk: `${String(app.clock.now()).padStart(15, "0")}#x`, tags: [] };
  await db.send(new PutCommand({ TableName: outboxTable(), Item }));
  app.clock.advance(1_000);
  app.faults.after("TransactWriteItems", 1).loseAnswer();
  await expect(app.settled()).rejects.toThrow("1 events were set aside");
  expect(await rows()).toMatchObject([{ pk: "aside" }]);
  const said = app.logs.slice(since).filter(({ msg }) => String(msg).startsWith("job.set_aside"));
  expect(said).toMatchObject([{ level: "error", msg: "job.set_aside", jobId: "x" }]);
});

test.each(
  [
    "PutItem 1",
    "UpdateItem 1",
    "SendMessage 1",
    "DeleteItem 1",
    "DeleteItem 2",
    "TransactWriteItems 1",
  ].flatMap((call) => [["before", call] as const, ["after", call] as const]),
)(
  "a job takes effect exactly once when the process crashes %s %s of the sweep",
  async (moment, call) => {
    const text = `${moment} ${call}`;
    work = (ctx) => ctx.enqueue("reminders.reminder.count", { text }, { delaySeconds: 60 });
    await post("/commit");
    app.clock.advance(60_000);
    const [operation = "", n] = call.split(" ");
    app.faults[moment](operation, Number(n)).crash();
    await expect(app.settled()).rejects.toThrow(CrashError);
    // Past the dead process's leases, and what it has received.
    app.clock.advance(leaseMs);
    await app.settled();
    const { db } = await app.ctx(ann);
    const { Item } = await db.send(
      new GetCommand({
        TableName: app.env["KEELSON_TABLE_REMINDERS"] ?? "keelson-reminders",
        Key: { pk: text },
        ConsistentRead: true,
      }),
    );
    expect(Item).toEqual({ pk: text, times: 1 });
    expect(await rows()).toEqual([]);
  },
);
