import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { EffectOptions } from "../handlers/effect-options.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "note.written": { text: string };
    "note.unheard": { text?: string | undefined };
    "note.stored": { text: string };
  }
  interface Jobs {
    "notes.note.print": { text: string };
    "notes.note.sort": { text: string; shelf: string };
    "notes.note.mine": { text: string };
    "notes.note.keyed": { key: unknown };
  }
  interface Channels {
    wall: { text: string };
  }
}

/** What the next write does. */
let work: (ctx: PipelineContext) => unknown = () => undefined;
let heard: unknown[] = [];
const text = z.object({ text: z.string() });
const notes = defineFeature("notes", (r) => {
  const table = r.table("notes", { partitionKey: "pk", tenant: false });
  r.event("note.written", text);
  r.event("note.unheard", z.object({ text: z.string().optional() }));
  r.event("note.stored", text, { keepDays: 1 });
  r.on("note.written", {
    name: "hear",
    handler: async (ctx, event) => {
      heard.push({
        ...event,
        requestId: ctx.requestId,
        user: ctx.user,
        signal: ctx.signal,
        request: ctx.request,
      });
    },
  });
  r.job("note.print", {
    input: text,
    handler: async (_ctx, payload) => void heard.push(payload.text),
  });
  r.job("note.sort", {
    input: text.extend({ shelf: z.string() }),
    dedupKey: (payload) => payload.text,
    order: ({ shelf }) => shelf,
    handler: async (_ctx, payload) => void heard.push(payload.text),
  });
  r.job("note.mine", {
    input: text,
    dedupScope: "user",
    handler: async (ctx) => void heard.push(ctx.user.id),
  });
  r.job("note.keyed", {
    input: z.object({ key: z.unknown() }),
    dedupKey: ({ key }) => key as string, // as plain JavaScript gives anything
    handler: async () => undefined,
  });
  r.channel("wall", {
    input: text,
    send: async (_ctx, message, { id }) => void heard.push([message.text, id]),
  });
  r.write("note.do", {
    route: "POST /do",
    access: access.everyone,
    handler: async (ctx) => work(ctx),
  });
  r.write("note.commit", {
    route: "POST /commit",
    access: access.authenticated,
    handler: async (ctx) => {
      await work(ctx);
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: "n" } } }], {
        committed: true,
      });
    },
  });
  r.query("note.look", {
    route: "GET /look",
    access: access.everyone,
    handler: async (ctx) => work(ctx as PipelineContext), // as plain JavaScript calls it
  });
  return { table };
});
const ann = { id: "ann", tenantId: "acme" };
const bob = { id: "bob", tenantId: "acme" };
const eve = { id: "eve", tenantId: "evil" };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app.close());
beforeEach(() => {
  heard = [];
});

const post = (path: string, as = ann, headers: Record<string, string> = {}) =>
  app.fetch(path, { body: {}, as, headers });
const lastError = () =>
  String(app.logs.filter(({ msg }) => msg === "request.failed").at(-1)?.["message"]);
const seen = () => ({ events: app.events.length, jobs: app.jobs.length });

describe("an event", () => {
  test("is stored with the commit and reaches its consumer with its cause", async () => {
    work = (ctx) => ctx.publish("note.written", { text: "one" });
    const answer = await post("/commit", ann, { "x-request-id": "cause-1" });
    expect(answer.status).toBe(200);
    expect(app.events.at(-1)).toMatchObject({
      type: "note.written",
      payload: { text: "one" },
      causedBy: "cause-1",
    });
    await app.settled();
    expect(heard).toEqual([
      {
        kind: "shared",
        type: "note.written",
        eventId: app.events.at(-1)?.eventId,
        payload: { text: "one" },
        causedBy: "cause-1",
        origRequestId: "cause-1",
        tenantId: "acme",
        userId: "ann",
        requestId: "cause-1",
        user: { id: "ann", tenantId: "acme", roles: [], kind: "user" },
        signal: undefined,
        request: undefined,
      },
    ]);
  });

  test("is published with the result when nothing is committed, also by a write without a claim", async () => {
    work = (ctx) => ctx.publish("note.written", { text: "two" });
    expect((await post("/do")).status).toBe(204);
    expect((await app.fetch("/do", { body: {} })).status).toBe(204);
    await app.settled();
    expect(heard).toMatchObject(
      [{ user: { id: "ann" } }, { user: { id: undefined, tenantId: undefined } }].sort(),
    );
  });

  test("is published with an answer that sets a cookie, although that is never stored", async () => {
    work = async (ctx) => {
      await ctx.publish("note.written", { text: "cookie" });
      return reply({}, { cookies: { seen: { value: "1" } } });
    };
    expect((await post("/do", ann, { "idempotency-key": "cookie" })).status).toBe(200);
    await app.settled();
    expect(heard).toHaveLength(1);
  });

  test.each([
    ["throws", () => Promise.reject(new Error("no"))],
    ["answers that nothing was done", async () => reply({}, { status: 409 })],
    ["answers that it cannot", async () => reply({}, { status: 503 })],
    ["answers with a Response", async () => Response.json({}, { status: 404 })],
  ])("is dropped when the handler %s", async (_, end) => {
    const before = seen();
    work = async (ctx) => {
      await ctx.publish("note.written", { text: "dropped" });
      return end();
    };
    expect((await post("/do")).status).toBeGreaterThanOrEqual(400);
    await app.settled();
    expect(seen()).toEqual(before);
    expect(heard).toEqual([]);
  });

  test("is published once when a write is sent again", async () => {
    const before = seen();
    work = (ctx) => ctx.publish("note.written", { text: "again" });
    for (let repeat = 0; repeat < 3; repeat += 1)
      await post("/commit", ann, { "idempotency-key": "again" });
    await app.settled();
    expect(seen()).toEqual({ ...before, events: before.events + 1 });
    expect(heard).toHaveLength(1);
  });

  test("is published even when it has no consumer", async () => {
    work = (ctx) => ctx.publish("note.unheard", { text: undefined });
    await post("/do");
    await app.settled();
    expect(app.events.at(-1)).toMatchObject({ type: "note.unheard", payload: {} });
  });

  test.each([
    [
      "no feature declares",
      (ctx: PipelineContext) => ctx.publish("note.unknown" as "note.written", { text: "" }),
      "declare it",
    ],
    [
      "does not fit",
      (ctx: PipelineContext) => ctx.publish("note.written", { text: 1 as never }),
      "does not fit its schema (text: ",
    ],
    [
      "has a requestId",
      (ctx: PipelineContext) => ctx.publish("note.written", { text: "", requestId: "r" } as never),
      "keelson's own",
    ],
    [
      "is too large",
      (ctx: PipelineContext) => ctx.publish("note.written", { text: "x".repeat(1_048_576) }),
      "EventBridge takes",
    ],
  ])("that %s fails the write, and nothing is published", async (_, publish, why) => {
    const before = seen();
    work = publish;
    expect((await post("/do")).status).toBe(500);
    expect(lastError()).toContain(why);
    await app.settled();
    expect(seen()).toEqual(before);
  });

  test("cannot be published after the commit, nor by a query", async () => {
    work = async (ctx) => {
      await ctx.commit([], {});
      await ctx.publish("note.written", { text: "late" });
    };
    expect((await post("/do", ann, { "idempotency-key": "late" })).status).toBe(200);
    expect(app.logs.find(({ msg }) => msg === "once.threw_after_commit")?.["message"]).toContain(
      "publish before ctx.commit",
    );
    work = (ctx) => ctx.publish("note.written", { text: "read" });
    expect((await app.fetch("/look")).status).toBe(500);
    expect(lastError()).toContain("ctx.publish: a query reads");
  });

  test("that the bus rejects is left to the sweep, and the write is answered", async () => {
    work = (ctx) => ctx.publish("note.written", { text: "swept" });
    app.faults.before("PutEvents", 1).fail("InternalException");
    const before = seen();
    expect((await post("/commit")).status).toBe(200);
    expect(seen()).toEqual(before);
    expect(app.logs.slice(-2)).toContainEqual(
      expect.objectContaining({ msg: "event.dispatch_failed", level: "warn" }),
    );
    await app.settled();
    expect(heard).toHaveLength(1);
    expect(app.logs).toContainEqual(
      expect.objectContaining({ msg: "outbox.swept", dispatched: 1, left: 0 }),
    );
  });

  test("does not delay the answer when its dispatch is slow", async () => {
    work = (ctx) => ctx.publish("note.written", { text: "slow" });
    app.faults.before("PutEvents", 1).delay(60_000);
    expect((await post("/commit")).status).toBe(200);
    await app.settled(); // by the sweep
    expect(heard).toHaveLength(1);
  });
});

const effects: readonly [string, (ctx: PipelineContext, options?: EffectOptions) => unknown][] = [
  ["an event", (ctx, options) => ctx.publish("note.written", { text: "effect" }, options)],
  ["a kept event", (ctx, options) => ctx.publish("note.stored", { text: "effect" }, options)],
  [
    "a job",
    (ctx, options) => ctx.enqueue("notes.note.keyed", { key: crypto.randomUUID() }, options),
  ],
  [
    "a delayed job",
    (ctx, options) =>
      ctx.enqueue("notes.note.print", { text: "delayed" }, { ...options, delaySeconds: 30 }),
  ],
  ["a delivery", (ctx, options) => ctx.delivery.send("wall", { text: "effect" }, options)],
];
/** How a run ends whose effects are dropped. */
const failures: readonly [string, (ctx: PipelineContext) => unknown][] = [
  ["throws", () => Promise.reject(new Error("no"))],
  ["answers 400", () => reply({}, { status: 400 })],
  [
    "commits in vain",
    (ctx) =>
      ctx.commit(
        [
          {
            ConditionCheck: {
              TableName: notes.table.name,
              Key: { pk: "absent" },
              ConditionExpression: "attribute_exists(pk)",
            },
          },
        ],
        {},
      ),
  ],
];
/** What has happened so far, as far as a test sees it. */
const happened = () => ({
  ...seen(),
  deliveries: app.deliveries.length,
  scheduled: app.logs.filter(({ msg }) => msg === "job.scheduled").length,
  queued: app.logs.filter(({ msg }) => msg === "delivery.enqueued").length,
});

describe.each(effects)("%s", (_effect, take) => {
  test.each(failures)("is dropped if the handler %s", async (_failure, fails) => {
    const before = happened();
    work = async (ctx) => {
      await take(ctx);
      await take(ctx, { afterCommit: true });
      return fails(ctx);
    };
    expect((await post("/do")).status).toBeGreaterThanOrEqual(400);
    app.clock.advance(31_000);
    await app.settled();
    expect(happened()).toEqual(before);
    expect(heard).toEqual([]);
  });

  test.each(failures)(
    "with `afterCommit: false` happens although the handler %s",
    async (_failure, fails) => {
      const before = happened();
      work = async (ctx) => {
        await take(ctx, { afterCommit: false });
        return fails(ctx);
      };
      expect((await post("/do")).status).toBeGreaterThanOrEqual(400);
      const stored = happened();
      app.clock.advance(31_000);
      await app.settled();
      const after = happened();
      const more = (count: keyof typeof before) => after[count] - before[count];
      expect(more("events") + more("jobs") + more("deliveries")).toBe(1);
      expect([stored.scheduled, stored.queued]).toEqual([after.scheduled, after.queued]);
      expect(heard.length).toBeLessThanOrEqual(1);
    },
  );

  test("with `afterCommit: false` has happened once its call returns", async () => {
    let during = happened();
    const before = happened();
    work = async (ctx) => {
      await take(ctx, { afterCommit: false });
      during = happened();
    };
    expect((await post("/do")).status).toBe(204);
    expect(during).not.toEqual(before);
    app.clock.advance(31_000);
    await app.settled();
  });

  test("waits for the end of the handler", async () => {
    const before = happened();
    work = async (ctx) => {
      await take(ctx);
      expect(happened()).toEqual(before);
    };
    expect((await post("/do")).status).toBe(204);
    expect(happened()).not.toEqual(before);
    app.clock.advance(31_000);
    await app.settled();
  });

  test("waits for ctx.commit, and is written with it", async () => {
    const before = happened();
    let committed = happened();
    work = async (ctx) => {
      await take(ctx);
      expect(happened()).toEqual(before);
      await ctx.commit([], {});
      committed = happened();
    };
    expect((await post("/do")).status).toBe(200);
    expect(committed).not.toEqual(before);
    app.clock.advance(31_000);
    await app.settled();
  });

  test("is refused with an `afterCommit` that is neither true nor false", async () => {
    const before = happened();
    let thrown: unknown;
    work = async (ctx) => {
      try {
        await take(ctx, { afterCommit: "no" } as never);
      } catch (error) {
        thrown = error;
      }
    };
    expect((await post("/do")).status).toBe(204);
    expect(thrown).toBeInstanceOf(TypeError);
    expect(String(thrown)).toMatch(/ctx\.[a-z.]+: afterCommit is .*; use true or false/);
    expect(happened()).toEqual(before);
  });

  test.each([undefined, { afterCommit: false }])(
    "is refused in a query with the options %j",
    async (options) => {
      const before = happened();
      work = (ctx) => take(ctx, options);
      expect((await app.fetch("/look")).status).toBe(500);
      expect(lastError()).toContain("a query reads");
      expect(happened()).toEqual(before);
    },
  );
});

test("a write answers with its committed result, whatever it throws or returns later, also without a claim", async () => {
  work = async (ctx) => {
    await ctx.commit([], { committed: true });
    throw new Error("later");
  };
  for (const headers of [{}, { "idempotency-key": "throws-later" }]) {
    const answer = await post("/do", ann, headers);
    expect([answer.status, await answer.json()]).toEqual([200, { committed: true }]);
  }
  expect(
    app.logs.filter(({ msg, message }) => msg === "once.threw_after_commit" && message === "later"),
  ).toHaveLength(2);
  work = async (ctx) => {
    await ctx.commit([], { committed: true });
    return { returned: true };
  };
  for (const headers of [{}, { "idempotency-key": "returns-another" }]) {
    expect(await (await post("/do", ann, headers)).json()).toEqual({ committed: true });
  }
});

describe("a job", () => {
  test("is enqueued with the commit and deduplicated for five minutes within its tenant", async () => {
    work = (ctx) => ctx.enqueue("notes.note.print", { text: "print" });
    for (const as of [ann, bob, eve, eve]) await post("/do", as);
    expect(app.jobs.slice(-2)).toMatchObject([
      { name: "notes.note.print", payload: { text: "print" }, tenantId: "acme", userId: "ann" },
      { name: "notes.note.print", payload: { text: "print" }, tenantId: "evil", userId: "eve" },
    ]);
    await app.settled();
    expect(heard).toEqual(["print", "print"]);
    app.clock.advance(301_000);
    await post("/do");
    await app.settled();
    expect(heard).toEqual(["print", "print", "print"]);
  });

  test("is deduplicated by its own key or by its user when declared so", async () => {
    work = async (ctx) => {
      await ctx.enqueue("notes.note.sort", { text: "a", shelf: "left" });
      await ctx.enqueue("notes.note.sort", { text: "a", shelf: "right" });
      await ctx.enqueue("notes.note.mine", { text: "a" });
    };
    await post("/do", ann);
    await post("/do", bob);
    await app.settled();
    expect(heard.toSorted()).toEqual(["a", "ann", "bob"]);
  });

  test.each([
    ["an object", { id: 1 }, "object"],
    ["null", null, "null"],
    ["nothing", undefined, "undefined"],
  ])("with %s as its key is refused: all such jobs would count as one", async (_, key, shown) => {
    let thrown: unknown;
    work = async (ctx) => {
      thrown = await ctx.enqueue("notes.note.keyed", { key }).catch((error: unknown) => error);
    };
    await app.fetch("/do", { method: "POST", as: ann });
    expect(thrown).toEqual(
      new TypeError(`dedupKey of notes.note.keyed returned ${shown}; return a string`),
    );
    work = (ctx) => ctx.enqueue("notes.note.keyed", { key: 7 });
    expect((await app.fetch("/do", { method: "POST", as: ann })).ok).toBe(true);
  });

  test("is one of the 100 items of its commit, unless it happens at once", async () => {
    const before = app.jobs.length;
    const many = (count: number, options: EffectOptions) => async (ctx: PipelineContext) => {
      for (let n = 0; n < count; n += 1)
        await ctx.enqueue("notes.note.keyed", { key: `${n} of ${count}` }, options);
    };
    work = many(101, {});
    expect((await app.fetch("/do", { body: {} })).status).toBe(500);
    expect(lastError()).toContain("more than the 100");
    expect(app.jobs).toHaveLength(before);
    work = many(101, { afterCommit: false });
    expect((await app.fetch("/do", { body: {} })).status).toBe(204);
    expect(app.jobs).toHaveLength(before + 101);
    await app.settled();
  });

  test("with an order runs after earlier jobs of the same order", async () => {
    work = async (ctx) => {
      for (const name of ["1", "2", "3", "4"])
        await ctx.enqueue("notes.note.sort", { text: `order ${name}`, shelf: "one" });
    };
    await post("/do");
    await app.settled();
    expect(heard).toEqual(["order 1", "order 2", "order 3", "order 4"]);
  });

  test.each([
    [
      "no feature declares",
      (ctx: PipelineContext) => ctx.enqueue("notes.note.unknown" as never, {} as never),
      "declare it with r.job",
    ],
    [
      "does not fit",
      (ctx: PipelineContext) => ctx.enqueue("notes.note.print", {} as never),
      "does not fit its schema (text: ",
    ],
    [
      "is too large",
      (ctx: PipelineContext) => ctx.enqueue("notes.note.print", { text: "x".repeat(1_048_576) }),
      "SQS takes",
    ],
  ])("that %s is not enqueued", async (_, enqueue, why) => {
    work = enqueue;
    expect((await post("/do")).status).toBe(500);
    expect(lastError()).toContain(why);
  });

  test.each([
    [
      { delay: 5 },
      'ctx.enqueue: unknown option "delay"; known are delaySeconds, at, tenantId, afterCommit',
    ],
    [
      { at: new Date(0), delaySecond: 1 },
      'unknown option "delaySecond"; did you mean `delaySeconds`? known are',
    ],
    [5, "ctx.enqueue: the options are 5; pass an object with delaySeconds, at, tenantId"],
    [null, "the options are null"],
    [[5], "the options are [5]"],
  ])("with invalid options is not enqueued: %j", async (options, why) => {
    const before = app.jobs.length;
    work = (ctx) => ctx.enqueue("notes.note.print", { text: "late" }, options as never);
    expect((await post("/do")).status).toBe(500);
    expect([lastError(), app.jobs.length]).toEqual([expect.stringContaining(why), before]);
  });

  test("cannot be enqueued by a query", async () => {
    work = (ctx) => ctx.enqueue("notes.note.print", { text: "read" });
    expect((await app.fetch("/look")).status).toBe(500);
    expect(lastError()).toContain("ctx.enqueue: a query reads");
  });
});

describe("a delivery", () => {
  test("is sent through its channel, once per call or once per key", async () => {
    const before = app.deliveries.length;
    work = async (ctx) => {
      const { send } = ctx.delivery;
      await send("wall", { text: "hello" });
      await send("wall", { text: "hello" });
      await send("wall", { text: "keyed" }, { key: "k1" });
      await send("wall", { text: "keyed once more" }, { key: "k1" });
    };
    await post("/do");
    await post("/do", eve);
    await app.settled();
    const sent = app.deliveries.slice(before);
    expect(sent.map(({ message, tenantId }) => [tenantId, message]).sort()).toEqual([
      ["acme", { text: "hello" }],
      ["acme", { text: "hello" }],
      ["acme", { text: "keyed" }],
      ["evil", { text: "hello" }],
      ["evil", { text: "hello" }],
      ["evil", { text: "keyed" }],
    ]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(6);
    expect(heard).toHaveLength(6);
  });

  test("has the ID that the channel gets, joined or at once, with and without a key", async () => {
    const sent: string[] = [];
    work = async (ctx) => {
      for (const options of [{}, { key: "k" }, { afterCommit: false }])
        sent.push((await ctx.delivery.send("wall", { text: "id" }, options)).deliveryId);
    };
    await post("/do", bob);
    await app.settled();
    expect(new Set(sent).size).toBe(3);
    expect(heard.toSorted()).toEqual(sent.map((id) => ["id", id]).toSorted());
  });

  test("from an anonymous caller is sent too", async () => {
    work = (ctx) => ctx.delivery.send("log", { text: "anonymous" }, { key: "anonymous" });
    await app.fetch("/do", { body: {} });
    await app.settled();
    expect(app.deliveries.at(-1)).toMatchObject({
      channel: "log",
      message: { text: "anonymous" },
      tenantId: undefined,
    });
  });

  test.each([
    [
      "through a channel that is not there",
      (ctx: PipelineContext) => ctx.delivery.send("pigeon" as "wall", { text: "" }),
      "there are log, webhook, wall",
    ],
    [
      "that does not fit",
      (ctx: PipelineContext) => ctx.delivery.send("wall", {} as { text: string }),
      "does not fit its schema (text: ",
    ],
  ])("%s fails at once", async (_, send, why) => {
    work = send;
    expect((await post("/do")).status).toBe(500);
    expect(lastError()).toContain(why);
  });

  test("cannot be sent by a query or by a server without a queue", async () => {
    work = (ctx) => ctx.delivery.send("log", {});
    expect((await app.fetch("/look")).status).toBe(500);
    expect(lastError()).toContain("ctx.delivery.send: a query reads");
    const plain = defineFeature("plain", (r) => {
      r.write("thing.do", { handler: async (ctx) => ctx.delivery.send("log", {}) });
    });
    const other = await startTestApp(buildServer({ features: [plain] }));
    try {
      await expect(other.call("plain.thing.do")).rejects.toThrow("this server has no queue");
      await other.settled();
    } finally {
      await other.close();
    }
  });
});
