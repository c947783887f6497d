import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { waitFor } from "../../../test/support/wait-for.ts";
import { CommitConditionError, ConflictError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { reply } from "../../parts/http/reply.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { FeatureBuilder } from "../features/feature-builder.ts";
import type { HookOptions } from "../handlers/hooks.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";

const newNote = z.object({
  text: z.string().max(20),
  size: z.string().transform(Number).optional(),
});
const note = z.object({ text: z.string(), by: z.string() });
const added = z.object({ note: z.string() });

declare module "../../base/types/names.ts" {
  interface Writes {
    "hooked.note.create": Write<typeof newNote, typeof note>;
    "hooked.note.plain": { input: unknown; accepted: unknown; output: unknown };
    "hooked.note.raw": { input: unknown; accepted: unknown; output: unknown };
  }
  interface Events {
    "hook.ran": z.output<typeof added>;
  }
  interface Jobs {
    "hooked.hook.work": z.input<typeof added>;
  }
}

type Hooks = HookOptions<"hooked.note.create">;
type Handle = (ctx: PipelineContext, input: z.output<typeof newNote>) => unknown;
/** What happened, in its order. */
let seen: unknown[] = [];
let one: Hooks = {};
let two: Hooks = {};
let raw: HookOptions<"hooked.note.raw"> = {};
let handle: Handle;
let holdsBack: Promise<void> | undefined;

const hookedBy = (r: FeatureBuilder, hooks: () => Hooks) =>
  r.hook("hooked.note.create", {
    before: async (ctx, input) => hooks().before?.(ctx, input),
    commit: async (ctx, input, result) => hooks().commit?.(ctx, input, result) ?? [],
    after: async (ctx, input, result) => hooks().after?.(ctx, input, result),
  });
const first = defineFeature("first", (r) => hookedBy(r, () => one));
const hooked = defineFeature("hooked", (r) => {
  const notes = r.table("notes", { partitionKey: "pk", tenant: false });
  const walled = r.table("walled", { partitionKey: "pk", tenant: true });
  r.event("hook.ran", added);
  r.on("hook.ran", {
    name: "hear",
    handler: async (_ctx, { payload }) => void seen.push(["heard", payload.note]),
  });
  r.job("hook.work", {
    input: added,
    handler: async (_ctx, payload) => void seen.push(["worked", payload.note]),
  });
  r.write("note.create", {
    route: "POST /notes",
    access: access.authenticated,
    input: newNote,
    output: note,
    handler: async (ctx, input) => (await handle(ctx, input)) as z.output<typeof note>,
  });
  r.write("note.plain", { handler: async () => ({ plain: true }) });
  r.query("note.has", {
    input: z.object({ pk: z.string() }),
    handler: async (ctx, Key) => {
      const { Item } = await ctx.db.send(
        new GetCommand({ TableName: notes.name, Key, ConsistentRead: true }),
      );
      return Item !== undefined;
    },
  });
  r.write("note.raw", {
    route: "POST /raw",
    access: access.everyone,
    handler: async (_ctx, input) => ({ got: input }),
  });
  return { tables: { notes, walled } };
});
const second = defineFeature("second", (r) => {
  hookedBy(r, () => two);
  r.hook("hooked.note.plain", { before: async (ctx) => void seen.push(ctx.user.id) });
  r.hook("hooked.note.raw", {
    before: (ctx, input) => raw.before?.(ctx, input),
  });
  r.hook("hooked.note.raw", { after: (ctx, input, result) => raw.after?.(ctx, input, result) });
});
const server = buildServer({ features: [first, hooked, second] });
const ann = { id: "ann", tenantId: "acme" };
const put = (pk: string, more: object = {}): CommitItem => ({
  Put: { TableName: hooked.tables.notes.name, Item: { pk, ...more } },
});
const commits: Handle = (ctx, { text }) => {
  seen.push(["handler", text]);
  return ctx.commit([put(text)], reply({ text, by: "commit" }, { status: 201 }));
};
const returns: Handle = (_ctx, { text }) => {
  seen.push(["handler", text]);
  return reply({ text, by: "return" }, { status: 201 });
};

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
beforeEach(() => {
  [seen, one, two, raw, handle, holdsBack] = [[], {}, {}, {}, commits, undefined];
});
afterEach(() => vi.restoreAllMocks());

let keys = 0;
const post = (
  body: object,
  headers: Record<string, string> = { "idempotency-key": `key-${++keys}` },
  of = app,
) => of.fetch("/notes", { body, as: ann, headers });
const has = (pk: string) => app.call("hooked.note.has", { pk });
const lineOf = (msg: string) => app.logs.filter((line) => line["msg"] === msg).at(-1);
const sees = (name: string): Hooks => ({
  before: (_ctx, { text }) => void seen.push([name, "before", text]),
  commit: (_ctx, { text }, result) => {
    seen.push([name, "commit", text, result]);
    return [put(`${text} of ${name}`)];
  },
  after: (_ctx, { text }, result) => void seen.push([name, "after", text, result]),
});

describe.each([
  ["commits", commits, "commit"],
  ["returns", returns, "return"],
])("the hooks of a write that %s", (_, does, by) => {
  beforeEach(() => {
    handle = does;
  });

  test("run in the order of the features, add items to its transaction and are skipped on a replay", async () => {
    [one, two] = [sees("one"), sees("two")];
    const text = `all ${by}`;
    const headers = { "idempotency-key": `all-${by}` };
    const transactions = app.calls["TransactWriteItems"] ?? 0;
    const answer = await post({ text }, headers);
    const result = { text, by };
    expect([answer.status, await answer.json()]).toEqual([201, result]);
    const [joins, follows] = [
      (n: string) => [n, "commit", text, result],
      (n: string) => [n, "after", text, result],
    ];
    expect(seen).toEqual([
      ["one", "before", text],
      ["two", "before", text],
      ["handler", text],
      joins("one"),
      joins("two"),
      follows("one"),
      follows("two"),
    ]);
    expect(app.calls["TransactWriteItems"]).toBe(transactions + 1);
    expect([await has(`${text} of one`), await has(`${text} of two`), await has(text)]).toEqual([
      true,
      true,
      by === "commit",
    ]);

    seen = [];
    const replay = await post({ text }, headers);
    expect([replay.headers.get("idempotent-replayed"), await replay.json()]).toEqual([
      "true",
      result,
    ]);
    expect(seen).toEqual([]);
  });

  test("can refuse it with a typed error, and leave nothing behind", async () => {
    [one, two] = [
      sees("one"),
      { ...sees("two"), before: () => Promise.reject(new ConflictError("quota")) },
    ];
    const answer = await post({ text: "refused" });
    expect([answer.status, await answer.json()]).toEqual([
      409,
      expect.objectContaining({ error: "quota" }),
    ]);
    expect(seen).toEqual([["one", "before", "refused"]]);

    one = { ...sees("one"), commit: () => Promise.reject(new ConflictError("late")) };
    two = { after: () => void seen.push("never") };
    expect((await post({ text: "refused late" })).status).toBe(409);
    expect(await has("refused late")).toBe(false);
    expect(seen.at(-1)).toEqual(["handler", "refused late"]);
  });

  test("run again with a retry, and a failed condition of their items is a 409", async () => {
    const own = { Item: { pk: `once ${by}` }, ConditionExpression: "attribute_not_exists(pk)" };
    two = {
      commit: () => [{ Put: { TableName: hooked.tables.notes.name, ...own } }],
      after: () => void seen.push("after"),
    };
    expect((await post({ text: "1" })).status).toBe(201);
    const again = await post({ text: "2" });
    expect([again.status, await again.json()]).toEqual([
      409,
      expect.objectContaining({ error: "condition_failed" }),
    ]);
    expect(await has("2")).toBe(false);
    expect(seen).toEqual([["handler", "1"], "after", ["handler", "2"]]);
  });

  test("publish and enqueue with it, and publish nothing after it", async () => {
    two = {
      before: (ctx) => ctx.publish("hook.ran", { note: "before" }),
      commit: async (ctx) => {
        await ctx.publish("hook.ran", { note: "commit" });
        await ctx.enqueue("hooked.hook.work", { note: `commit ${by}` });
        return [];
      },
      after: async (ctx) => {
        await ctx.enqueue("hooked.hook.work", { note: `after ${by}` }, { afterCommit: false });
        await (ctx as PipelineContext).publish("hook.ran", { note: "after" });
      },
    };
    expect((await post({ text: "events" })).status).toBe(201);
    // The answer waits for the hook for 2 s only.
    await expect
      .poll(() => lineOf("hook.after_failed"))
      .toMatchObject({
        level: "error",
        hook: "second",
        handler: "hooked.note.create",
      });
    expect(lineOf("hook.after_failed")?.["message"]).toContain(
      "publish before ctx.commit, and in a hook before `after`",
    );
    await app.settled();
    expect(seen.slice(1).sort()).toEqual([
      ["heard", "before"],
      ["heard", "commit"],
      ["worked", `after ${by}`],
      ["worked", `commit ${by}`],
    ]);
  });

  test("enqueue after it only what does not wait for a commit", async () => {
    two = { after: (ctx) => ctx.enqueue("hooked.hook.work", { note: `late ${by}` }, {} as never) };
    expect((await post({ text: `late ${by}` })).status).toBe(201);
    await expect
      .poll(() => lineOf("hook.after_failed")?.["message"])
      .toContain(
        "ctx.enqueue: the run has committed; enqueue before ctx.commit, and in a hook before `after`",
      );
    await app.settled();
    expect(seen).toEqual([["handler", `late ${by}`]]);
  });

  test("run once and add their items once for concurrent duplicates", async () => {
    holdsBack = new Promise((resolve) => setImmediate(resolve));
    one = sees("one");
    handle = async (ctx, input) => {
      await holdsBack;
      return does(ctx, input);
    };
    const text = `shared ${by}`;
    const answers = await Promise.all(
      [1, 2, 3].map(() => post({ text }, { "idempotency-key": `shared-${by}` })),
    );
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(seen.map((what) => (what as string[])[1])).toEqual(["before", text, "commit", "after"]);
  });

  test("run for a write without a claim too", async () => {
    two = sees("two");
    expect((await post({ text: `free ${by}` }, {})).status).toBe(201);
    expect(seen).toHaveLength(4);
    expect(await has(`free ${by} of two`)).toBe(true);
  });
});

describe("before", () => {
  test("changes the input for later hooks and the handler, and the schema validates it again", async () => {
    one = { before: (_ctx, { size }) => ({ text: `size ${typeof size}`, size: "7" }) };
    two = { before: (_ctx, input) => void seen.push(input) };
    expect((await post({ text: "x", size: "3" })).status).toBe(201);
    expect(seen).toEqual([{ text: "size number", size: 7 }, ["handler", "size number"]]);
  });

  test("changes a field without any transform being applied to its own result, whatever the number of hooks", async () => {
    one = { before: (_ctx, input) => ({ ...input, text: `${input.text}!` }) };
    two = { before: (_ctx, input) => ({ ...input, text: `${input.text}?` }) };
    handle = (_ctx, input) => {
      seen.push(input);
      return { text: input.text, by: "return" };
    };
    expect((await post({ text: "x", size: "3" })).status).toBe(200);
    expect(seen).toEqual([{ text: "x!?", size: 3 }]);
  });

  test("validates an input again that it changed in place and did not return", async () => {
    one = { before: (_ctx, input) => void Object.assign(input, { text: `${input.text}!` }) };
    two = { before: (_ctx, input) => void seen.push({ ...input }) };
    expect((await post({ text: "x", size: "3" })).status).toBe(201);
    expect(seen).toEqual([{ text: "x!", size: 3 }, ["handler", "x!"]]);
    one = { before: (_ctx, input) => void Object.assign(input, { size: -1 }) };
    expect((await post({ text: "x", size: "3" })).status).toBe(500);
    expect(seen).toHaveLength(2);
  });

  test("fails the write when the input it returns does not fit, and is named", async () => {
    one = { before: () => ({ text: "far longer than a note may be" }) };
    expect((await post({ text: "x" })).status).toBe(500);
    const { message } = lineOf("request.failed") ?? {};
    expect(message).toContain(
      "hooked.note.create: the input that its hook of first returned does not fit its schema (text: ",
    );
    expect(seen).toEqual([]);
  });

  test("changes the input of a write without a schema freely", async () => {
    raw = {
      before: () => ({ changed: true }),
      after: (_ctx, input, result) => void seen.push(input, result),
    };
    const answer = await app.fetch("/raw", { body: { given: true } });
    expect(await answer.json()).toEqual({ got: { changed: true } });
    expect(seen).toEqual([{ changed: true }, { got: { changed: true } }]);
  });
});

test("a hook on a single moment also runs when code calls the write without HTTP", async () => {
  expect(await app.call("hooked.note.plain", {}, { as: ann })).toEqual({ plain: true });
  expect(seen).toEqual(["ann"]);
});

describe("commit", () => {
  test("is called for each attempt with the result that this attempt stores", async () => {
    two = sees("two");
    const condition = { ConditionExpression: "attribute_exists(pk)" };
    handle = async (ctx) => {
      const item = {
        Put: { TableName: hooked.tables.notes.name, Item: { pk: "no" }, ...condition },
      };
      const failed = await ctx
        .commit([item], { text: "first", by: "a" })
        .catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(CommitConditionError);
      return { text: "second", by: "b" };
    };
    expect(await (await post({ text: "tries" })).json()).toEqual({ text: "second", by: "b" });
    expect(seen.slice(1)).toEqual([
      ["two", "commit", "tries", { text: "first", by: "a" }],
      ["two", "commit", "tries", { text: "second", by: "b" }],
      ["two", "after", "tries", { text: "second", by: "b" }],
    ]);
  });

  test("calls its steps once for all attempts", async () => {
    let calls = 0;
    const stamps: unknown[] = [];
    one = {
      commit: async (ctx) => {
        stamps.push(await ctx.step("stamp", {}, () => (calls += 1)));
        return [];
      },
    };
    const condition = { ConditionExpression: "attribute_exists(pk)" };
    handle = async (ctx) => {
      const item = {
        Put: { TableName: hooked.tables.notes.name, Item: { pk: "no" }, ...condition },
      };
      const result = { text: "stamped", by: "a" };
      await expect(ctx.commit([item], result)).rejects.toThrow(CommitConditionError);
      return ctx.commit([put("stamped")], result);
    };
    const answer = await post({ text: "stamps" });
    expect([answer.status, stamps, calls]).toEqual([200, [1, 1], 1]);
  });

  test("is called once for a commit that is not awaited, whose result is the final one", async () => {
    two = sees("two");
    handle = (ctx) => {
      void ctx.commit([put("floating")], { text: "committed", by: "a" });
      return { text: "returned", by: "b" };
    };
    expect(await (await post({ text: "floats" })).json()).toEqual({ text: "committed", by: "a" });
    expect(seen.slice(1)).toEqual([
      ["two", "commit", "floats", { text: "committed", by: "a" }],
      ["two", "after", "floats", { text: "committed", by: "a" }],
    ]);
  });

  test.each([
    ["that nothing was done", 409, false],
    ["a cookie, which is never stored", 200, true],
  ])("stores items only if the write is done: the answer says %s", async (_, status, isDone) => {
    two = sees("two");
    const cookies = status === 200 ? { cookies: { seen: { value: "1" } } } : {};
    handle = () => reply({ text: `${status}`, by: "a" }, { status, ...cookies });
    const text = `says ${status}`;
    expect((await post({ text })).status).toBe(status);
    expect(await has(`${text} of two`)).toBe(isDone);
    expect(seen).toHaveLength(isDone ? 3 : 1);
  });

  test("stays behind the wall of the caller's tenant", async () => {
    two = {
      commit: () => [{ Put: { TableName: hooked.tables.walled.name, Item: { pk: "other/1" } } }],
    };
    expect((await post({ text: "walled" })).status).toBe(403);
    expect(lineOf("tenant.wall")).toMatchObject({ level: "error", tenantId: "acme" });
    expect(await has("walled")).toBe(false);
  });

  test("must return a list and cannot commit on its own", async () => {
    two = { commit: () => put("no list") as never };
    expect((await post({ text: "list" })).status).toBe(500);
    expect(lineOf("request.failed")?.["message"]).toContain(
      "commit of the hook of second returned no list of items",
    );

    const own = (ctx: object) =>
      (ctx as PipelineContext).commit([put("own")], {}) as Promise<never>;
    for (const hooks of [{ before: own }, { commit: own }]) {
      two = hooks;
      expect((await post({ text: "own" })).status).toBe(500);
      expect(lineOf("request.failed")?.["message"]).toBe(
        "ctx.commit: a hook commits nothing; return the items from its `commit`",
      );
    }
    two = { after: own };
    expect((await post({ text: "own after" })).status).toBe(201);
    expect(lineOf("hook.after_failed")?.["message"]).toContain(
      "ctx.commit: a hook commits nothing",
    );
    expect(await has("own")).toBe(false);
  });
});

describe("after", () => {
  test("that fails logs one line with its feature, and changes neither the answer nor later hooks", async () => {
    one = { after: () => Promise.reject(new ConflictError("broken")) };
    two = { after: () => void seen.push("two") };
    const answer = await post({ text: "fails" }, { "idempotency-key": "fails" });
    expect([answer.status, await answer.json()]).toEqual([201, { text: "fails", by: "commit" }]);
    expect(lineOf("hook.after_failed")).toMatchObject({
      level: "error",
      hook: "first",
      error: "broken",
      tenantId: "acme",
    });
    expect(seen).toEqual([["handler", "fails"], "two"]);
    await post({ text: "fails" }, { "idempotency-key": "fails" });
    expect(seen).toHaveLength(2);
  });

  test("that is slow delays the answer only briefly and is logged", async () => {
    const ending = Promise.withResolvers<void>();
    one = { after: () => ending.promise };
    two = { after: () => void seen.push("two") };
    const { setTimeout: original } = globalThis;
    vi.spyOn(globalThis, "setTimeout").mockImplementation((look, ms, ...given) =>
      original(look as () => void, ms === 2_000 ? 0 : ms, ...given),
    );
    expect(await app.call("hooked.note.create", { text: "long" }, { as: ann })).toEqual({
      text: "long",
      by: "commit",
    });
    expect(lineOf("hook.after_late")).toMatchObject({ level: "warn", hooks: ["first", "second"] });
    ending.resolve();
    await waitFor(() => expect(seen).toEqual([["handler", "long"], "two"]));
  });

  test("does not run when the write's completion could not be stored, since a retry runs it again", async () => {
    two = { after: () => void seen.push("after") };
    handle = returns;
    for (const attempt of [2, 3]) app.faults.before("PutItem", attempt).fail("InternalServerError");
    expect((await post({ text: "unnoted" })).status).toBe(201);
    expect(lineOf("once.completion_failed")).toMatchObject({ level: "error" });
    expect(seen).toEqual([["handler", "unnoted"]]);
  });

  test.each([
    ["commits", commits],
    ["returns", returns],
  ])(
    "cannot publish after a write that %s, since the event would never be sent",
    async (_, does) => {
      handle = does;
      two = {
        after: async (ctx) => {
          const published = (ctx as PipelineContext).publish("hook.ran", { note: "lost" });
          seen.push(await published.catch((error: Error) => error.message));
        },
      };
      expect((await post({ text: "lost" })).status).toBe(201);
      expect(seen.at(-1)).toContain("ctx.publish: the run has committed");
    },
  );

  test("runs when the handler throws after its commit, since the write is done", async () => {
    two = sees("two");
    handle = async (ctx) => {
      await ctx.commit([put("thrown")], { text: "thrown", by: "a" });
      throw new Error("late");
    };
    expect((await post({ text: "throws" })).status).toBe(200);
    expect(seen.at(-1)).toEqual(["two", "after", "throws", { text: "thrown", by: "a" }]);
  });

  test("reads and writes rows of its own", async () => {
    two = {
      after: (ctx) =>
        ctx.db.send(
          new PutCommand({ TableName: hooked.tables.notes.name, Item: { pk: "by after" } }),
        ),
    };
    expect((await post({ text: "rows" })).status).toBe(201);
    expect(await has("by after")).toBe(true);
  });
});
