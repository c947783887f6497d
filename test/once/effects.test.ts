import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { GetCommand, ScanCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import {
  access,
  buildServer,
  CommitConditionError,
  type CommitItem,
  defineFeature,
  type EffectOptions,
  type PipelineContext,
  reply,
} from "keelson";
import { lambdaHttp } from "keelson/lambda";
import { type AdoptedContext, requestScope, writeOnce } from "keelson/middy";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { timeIsOver } from "../support/time-is-over.ts";
import { waitFor } from "../support/wait-for.ts";

declare module "keelson" {
  interface Events {
    "deed.done": { text: string };
    "deed.asked": { text: string };
  }
  interface Jobs {
    "deeds.deed.work": { text: string };
    "deeds.deed.now": { text: string };
    "deeds.deed.line": { text: string };
    "deeds.deed.run": { text: string };
  }
  interface Channels {
    notice: { text: string };
  }
  interface Queries {
    "deeds.deed.look": { input: { text: string }; output: unknown };
  }
  interface Writes {
    "deeds.deed.hooked": { input: unknown; accepted: unknown; output: unknown };
  }
}

type Deed = (ctx: PipelineContext) => unknown;
let deed: Deed = () => undefined;
/** What the hooks of a write do. */
let hooks: { before?: Deed; commit?: (ctx: PipelineContext) => unknown; after?: Deed } = {};
/** What the consumer of the events was told. */
const heard: string[] = [];
/** What the job that is due now was told. */
const worked: string[] = [];
let looks: Deed = () => undefined;
const text = z.object({ text: z.string() });

const deeds = defineFeature("deeds", (r) => {
  const table = r.table("deeds", { partitionKey: "pk", tenant: false });
  r.event("deed.done", text);
  r.event("deed.asked", text);
  r.on("deed.done", {
    name: "hear",
    handler: async (_ctx, { payload }) => void heard.push(payload.text),
  });
  r.on("deed.asked", { name: "answer", handler: async (ctx) => void (await deed(ctx)) });
  r.job("deed.work", { input: text, handler: async () => undefined });
  r.job("deed.now", {
    input: text,
    dedupKey: () => crypto.randomUUID(),
    handler: async (_ctx, job) => void worked.push(job.text),
  });
  r.job("deed.run", { input: text, handler: async (ctx) => void (await deed(ctx)) });
  r.job("deed.line", {
    input: text,
    order: () => "one line",
    handler: async (_ctx, job) => void worked.push(job.text),
  });
  r.channel("notice", { input: text, send: async () => undefined });
  r.write("deed.do", {
    route: "POST /do",
    access: access.everyone,
    handler: async (ctx) => deed(ctx),
  });
  r.write("deed.hooked", {
    route: "POST /hooked",
    access: access.everyone,
    handler: async (ctx) => deed(ctx),
  });
  r.query("deed.look", { input: text, handler: async (ctx) => looks(ctx as PipelineContext) }); // safe: as in hooks
  return { table };
});
const hooking = defineFeature("hooking", (r) => {
  r.hook("deeds.deed.hooked", {
    // Safe, three times: what a hook may not do fails when it runs.
    before: async (ctx) => void (await hooks.before?.(ctx as PipelineContext)),
    commit: async (ctx) => {
      await hooks.commit?.(ctx as PipelineContext);
      return [];
    },
    after: async (ctx) => void (await hooks.after?.(ctx as unknown as PipelineContext)),
  });
});
const build = () => buildServer({ features: [deeds, hooking] });
const server = build();

let app: TestApp;
let runs = 0;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
beforeEach(() => {
  [deed, looks, hooks] = [() => undefined, () => undefined, {}];
  runs += 1;
});
afterEach(() => vi.unstubAllEnvs());

const put = (pk = `${runs}`): CommitItem => ({
  Put: { TableName: deeds.table.name, Item: { pk } },
});
/** An item whose condition never holds. */
const refused = (): CommitItem => ({
  ConditionCheck: {
    TableName: deeds.table.name,
    Key: { pk: "nowhere" },
    ConditionExpression: "attribute_exists(pk)",
  },
});
const ann = { id: "ann", tenantId: "acme" };
let keys = 0;
const send = (
  path = "/do",
  headers: Record<string, string> = { "idempotency-key": `k${++keys}` },
  signal?: AbortSignal,
) => app.fetch(path, { body: {}, as: ann, headers, ...(signal === undefined ? {} : { signal }) });
const publish = (ctx: PipelineContext, words = "done") => ctx.publish("deed.done", { text: words });
/** All kinds of effects, which join a commit. */
const all = async (ctx: PipelineContext, words = "done") => {
  await publish(ctx, words);
  await ctx.delivery.send("notice", { text: words });
  await ctx.enqueue("deeds.deed.now", { text: words });
  await ctx.enqueue("deeds.deed.work", { text: words }, { delaySeconds: 3_600 });
};
/** What a handler answers. */
const said = (what: unknown) => ({ said: what });
const caught = async (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: Error) => error.message,
  );

/** What has happened since. */
async function happened(since: Happened = nothing()) {
  await app.settled();
  const now = await seen();
  return {
    events: now.events.slice(since.events.length).sort(),
    deliveries: now.deliveries.slice(since.deliveries.length),
    works: now.works.slice(since.works.length).sort(),
    jobs: now.jobs - since.jobs,
    lines: now.lines.slice(since.lines.length),
  };
}
interface Happened {
  readonly events: readonly string[];
  readonly deliveries: readonly string[];
  readonly works: readonly string[];
  readonly jobs: number;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}
const nothing = (): Happened => ({ events: [], deliveries: [], works: [], jobs: 0, lines: [] });
const named = [
  "effects.dropped",
  "effects.lost",
  "once.threw_after_commit",
  "once.commit_uncertain",
  "once.fenced",
];
async function seen(): Promise<Happened> {
  const { db } = await app.ctx(ann);
  const { Items: rows = [] } = await db.send(
    new ScanCommand({ TableName: "keelson-outbox", ConsistentRead: true }),
  );
  return {
    events: [...heard],
    deliveries: app.deliveries.map(({ message }) => String((message as { text: string }).text)),
    works: [...worked],
    jobs: rows.filter(({ type }) => type === "deeds.deed.work").length,
    lines: app.logs.filter(({ msg }) => named.includes(String(msg))),
  };
}
const linesOf = ({ lines }: Pick<Happened, "lines">, msg: string) =>
  lines.filter((line) => line["msg"] === msg);
const stored = async (pk = `${runs}`) => {
  const { db } = await app.ctx(ann);
  return (
    (
      await db.send(
        new GetCommand({ TableName: "keelson-deeds", Key: { pk }, ConsistentRead: true }),
      )
    ).Item !== undefined
  );
};
/** Another process takes over the claim of the run with the key `k<keys>`. */
const takeOver = async () => {
  const { db } = await app.ctx(ann);
  const Key = { pk: await partition(), sk: `dedup:k${keys}` };
  const UpdateExpression = "SET #owner = :other";
  const values = {
    ExpressionAttributeNames: { "#owner": "owner" },
    ExpressionAttributeValues: { ":other": "another" },
  };
  await db.send(new UpdateCommand({ TableName: "keelson-once", Key, UpdateExpression, ...values }));
};
const partition = async () => {
  const { db } = await app.ctx(ann);
  const filter = {
    FilterExpression: "sk = :sk",
    ExpressionAttributeValues: { ":sk": `dedup:k${keys}` },
  };
  const { Items = [] } = await db.send(
    new ScanCommand({ TableName: "keelson-once", ConsistentRead: true, ...filter }),
  );
  return String(Items[0]?.["pk"]);
};
/** Another run has taken over the claim and has answered: that is what this run's caller gets. */
const othersAnswer = async () => {
  const { db } = await app.ctx(ann);
  const answer = Buffer.from(
    `\0${JSON.stringify({ status: 200, headers: { "content-type": "application/json" }, body: '"theirs"' })}`,
  );
  await db.send(
    new UpdateCommand({
      TableName: "keelson-once",
      Key: { pk: await partition(), sk: `dedup:k${keys}` },
      UpdateExpression:
        "SET #owner = :other, #status = :done, #data = :answer, expiration = :later",
      ExpressionAttributeNames: { "#owner": "owner", "#status": "status", "#data": "data" },
      ExpressionAttributeValues: {
        ":other": "another",
        ":done": "COMPLETED",
        ":answer": answer,
        ":later": Math.floor(app.clock.now() / 1000) + 300,
      },
    }),
  );
};
/** Sends the request to a function that has little time left. */
/** Has the time of a function be over. */
async function outlast(signal: AbortSignal | undefined): Promise<void> {
  timeIsOver();
  await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  vi.mocked(performance.now).mockRestore();
}

const sendInTime = async (leftMs: number) => {
  stubEnvironment();
  const event = {
    version: "2.0",
    rawPath: "/do",
    headers: { "idempotency-key": `k${++keys}`, "content-type": "application/json" },
    body: "{}",
    requestContext: { http: { method: "POST" } },
  };
  // Safe: these are the parts of the event and the context that are read.
  return lambdaHttp(server)(event as never, { getRemainingTimeInMillis: () => leftMs } as never);
};

interface Row {
  /** The first three cells of the row in docs/commit.md. */
  readonly asked: string;
  readonly next: string;
  readonly fate: string;
  prove(): Promise<void>;
}

const rows: readonly Row[] = [
  {
    asked: "before `ctx.commit`",
    next: "the commit is written",
    fate: "is stored with the items, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        return ctx.commit([put()], said("written"));
      };
      expect((await send()).status).toBe(200);
      expect(await happened(since)).toEqual({
        events: ["done"],
        deliveries: ["done"],
        works: ["done"],
        jobs: 1,
        lines: [],
      });
    },
  },
  {
    asked: "before `ctx.commit`",
    next: "the commit fails, and the handler answers below 400",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        await all(ctx);
        await ctx.commit([put(), refused()], said("written")).catch(() => undefined);
        return said("sold out");
      };
      expect((await send()).status).toBe(200);
      const { lines, ...rest } = await happened(since);
      expect([rest, await stored()]).toEqual([
        { events: [], deliveries: [], works: [], jobs: 0 },
        false,
      ]);
      const types = [
        "event deed.done",
        "delivery notice",
        "job deeds.deed.now",
        "job deeds.deed.work",
      ];
      expect(lines).toEqual([
        expect.objectContaining({ msg: "effects.dropped", level: "info", types, number: 8 }),
      ]);
    },
  },
  {
    asked: "before `ctx.commit`",
    next: "the commit fails, and the handler throws",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        return ctx.commit([put(), refused()], said("written"));
      };
      expect((await send()).status).toBe(409);
      const { lines, ...rest } = await happened(since);
      expect(rest).toEqual({ events: [], deliveries: [], works: [], jobs: 0 });
      expect(lines).toEqual([expect.objectContaining({ msg: "effects.dropped", number: 4 })]);
    },
  },
  {
    asked: "before each of three attempts",
    next: "the third one is written",
    fate: "happens once, with the ID that the first attempt gave it",
    prove: async () => {
      const since = await seen();
      const ids: string[] = [];
      const at = new Date(app.clock.now() + 9_000_000);
      deed = async (ctx) => {
        for (let attempt = 1; attempt <= 3; attempt += 1) {
          await publish(ctx, `attempt ${attempt}`);
          ids.push((await ctx.enqueue("deeds.deed.work", { text: "x" }, { at })).jobId);
          const items = attempt < 3 ? [refused()] : [put()];
          const result = await ctx.commit(items, said("written")).catch(() => undefined);
          if (result !== undefined) return result;
        }
        return said("never");
      };
      expect((await send()).status).toBe(200);
      const after = await happened(since);
      expect([after.events, after.jobs]).toEqual([["attempt 3"], 1]);
      expect(new Set(ids).size).toBe(1);
    },
  },
  {
    asked: "after a commit that failed",
    next: "the handler answers below 400",
    fate: "is stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx, "of the attempt");
        await ctx.commit([refused()], said("written")).catch(() => undefined);
        await all(ctx, "rejected");
        return said("rejected");
      };
      expect((await send()).status).toBe(200);
      expect(await happened(since)).toMatchObject({
        events: ["rejected"],
        deliveries: ["rejected"],
        works: ["rejected"],
        jobs: 1,
      });
    },
  },
  {
    asked: "in a handler that never commits",
    next: "it answers below 400",
    fate: "is stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => all(ctx);
      expect((await send()).status).toBe(204);
      expect(await happened(since)).toEqual({
        events: ["done"],
        deliveries: ["done"],
        works: ["done"],
        jobs: 1,
        lines: [],
      });
    },
  },
  {
    asked: "in a handler that never commits",
    next: "it answers 400 or above",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        return reply(said("no"), { status: 409 });
      };
      expect((await send()).status).toBe(409);
      expect(await happened(since)).toEqual({
        events: [],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "in a handler that never commits",
    next: "it throws",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        throw new Error("no");
      };
      expect((await send()).status).toBe(500);
      expect(await happened(since)).toEqual({
        events: [],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "without `await`, before `ctx.commit`",
    next: "the commit is written",
    fate: "is waited for, stored with the items, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        publish(ctx, "one");
        return (
          await Promise.all([publish(ctx, "two"), ctx.commit([put()], said("written")), turn()])
        )[1];
      };
      expect((await send()).status).toBe(200);
      expect(await happened(since)).toEqual({
        events: ["one", "two"],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "without `await`, in a handler that never commits",
    next: "it answers below 400",
    fate: "is waited for, stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      deed = (ctx) => {
        all(ctx);
        return said("at once");
      };
      expect((await send()).status).toBe(200);
      expect(await happened(since)).toEqual({
        events: ["done"],
        deliveries: ["done"],
        works: ["done"],
        jobs: 1,
        lines: [],
      });
    },
  },
  {
    asked: "that fails, without `await`",
    next: "the handler commits or returns",
    fate: "fails the commit, or the run: nothing is written",
    prove: async () => {
      const since = await seen();
      const bad = (ctx: PipelineContext) => ctx.publish("deed.done", { text: 1 as never });
      const works: Deed[] = [
        (ctx) => Promise.all([bad(ctx), ctx.commit([put()], said("written"))]),
        async (ctx) => {
          bad(ctx);
          return ctx.commit([put()], said("written"));
        },
        async (ctx) => {
          bad(ctx);
          await turn();
          await turn();
          return ctx.commit([put()], said("written"));
        },
        async (ctx) => {
          await publish(ctx);
          bad(ctx);
          return said("returned");
        },
      ];
      for (const work of works) {
        deed = work;
        expect((await send()).status).toBe(500);
        expect(await stored()).toBe(false);
      }
      expect((await happened(since)).events).toEqual([]);
    },
  },
  {
    asked: "that fails, with an error that the handler catches",
    next: "the commit is written",
    fate: "is left to the handler: the rest is stored, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        const message = await caught(ctx.publish("deed.done", { text: 1 as never }));
        await publish(ctx, "instead");
        return ctx.commit([put()], said(message));
      };
      const response = await send();
      expect([response.status, await response.json()]).toEqual([
        200,
        said(expect.stringContaining("does not fit its schema")),
      ]);
      expect(await happened(since)).toMatchObject({ events: ["instead"], lines: [] });
    },
  },
  {
    asked: "while `ctx.commit` is under way",
    next: "the commit is written",
    fate: "is refused: the call throws",
    prove: async () => {
      const since = await seen();
      let message = "";
      deed = async (ctx) => {
        const committed = ctx.commit([put()], said("written"));
        message = await caught(publish(ctx, "during"));
        ctx.delivery.send("notice", { text: "during, forgotten" });
        return committed;
      };
      expect((await send()).status).toBe(200);
      expect(message).toBe(
        "ctx.publish: the run is committing; publish before ctx.commit, and in a hook before `after`, or with { afterCommit: false }",
      );
      const after = await happened(since);
      expect([after.events, after.deliveries, await stored()]).toEqual([[], [], true]);
      expect(after.lines).toEqual([
        expect.objectContaining({ msg: "once.threw_after_commit", level: "error" }),
      ]);
      expect(after.lines[0]?.["message"]).toContain(
        "ctx.delivery.send: the run is committing; send before ctx.commit",
      );
    },
  },
  {
    asked: "after `ctx.commit`",
    next: "it was written",
    fate: "is refused: the call throws",
    prove: async () => {
      const since = await seen();
      const messages: string[] = [];
      deed = async (ctx) => {
        await ctx.commit([put()], said("written"));
        messages.push(
          await caught(publish(ctx)),
          await caught(ctx.delivery.send("notice", { text: "late" })),
        );
        messages.push(
          await caught(ctx.enqueue("deeds.deed.now", { text: "late" })),
          await caught(ctx.enqueue("deeds.deed.work", { text: "late" }, { delaySeconds: 1 })),
        );
        messages.push(await caught(ctx.step("late", {}, () => 1)));
      };
      expect((await send()).status).toBe(200);
      const verbs = ["publish", "send", "enqueue", "enqueue", "begin a step"];
      const calls = ["publish", "delivery.send", "enqueue", "enqueue", "step"];
      expect(messages).toEqual(
        calls.map(
          (call, n) =>
            `ctx.${call}: the run has committed; ${verbs[n]} before ctx.commit, and in a hook before \`after\`${call === "step" ? "" : ", or with { afterCommit: false }"}`,
        ),
      );
      expect(await happened(since)).toEqual({
        events: [],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "after the run has ended, by code that the run does not wait for",
    next: "",
    fate: "is refused, and logged as `effects.lost`",
    prove: async () => {
      let late: () => void = () => undefined;
      deed = (ctx) => {
        late = () => void publish(ctx, "late");
      };
      const since = await seen();
      expect((await send()).status).toBe(204);
      late();
      await waitFor(async () =>
        expect(linesOf(await seen(), "effects.lost")).toHaveLength(
          linesOf(since, "effects.lost").length + 1,
        ),
      );
      expect((await happened(since)).events).toEqual([]);
    },
  },
  {
    asked: "before `ctx.commit`",
    next: "it is unknown whether it was written",
    fate: "exists if the commit was written, and only then",
    prove: async () => {
      for (const isWritten of [true, false]) {
        const since = await seen();
        const messages: string[] = [];
        deed = async (ctx) => {
          await all(ctx);
          for (let nth = 1; nth <= 3; nth += 1) {
            // A refusal of the service leaves it open whether the transaction arrived.
            const fault = app.faults[isWritten && nth === 1 ? "after" : "before"](
              "TransactWriteItems",
              nth,
            );
            fault.fail("InternalServerError");
            app.faults.before("GetItem", nth).fail("InternalServerError");
          }
          messages.push(await caught(ctx.commit([put(`${runs} ${isWritten}`)], said("written"))));
          messages.push(
            await caught(publish(ctx, "more")),
            await caught(ctx.commit([], said("again"))),
          );
          throw new Error("unknown");
        };
        expect((await send()).status).toBe(500);
        expect(messages.slice(1)).toEqual([
          "ctx.publish: the run may have committed; publish before ctx.commit, and in a hook before `after`, or with { afterCommit: false }",
          "ctx.commit: the run may have committed already; leave it to a retry",
        ]);
        const after = await happened(since);
        const expected = isWritten ? ["done"] : [];
        expect([after.events, after.deliveries, after.works, after.jobs]).toEqual([
          expected,
          expected,
          expected,
          isWritten ? 1 : 0,
        ]);
        expect(await stored(`${runs} ${isWritten}`)).toBe(isWritten);
        expect(linesOf(after, "effects.dropped")).toEqual([]);
      }
    },
  },
  {
    asked: "in `before` of a hook",
    next: "a commit fails, the next one is written",
    fate: "is stored with the one that is written, then sent",
    prove: async () => {
      const since = await seen();
      hooks = { before: (ctx) => all(ctx, "of before") };
      deed = async (ctx) => {
        await publish(ctx, "first");
        await ctx.commit([refused()], said("written")).catch(() => undefined);
        await publish(ctx, "second");
        return ctx.commit([put()], said("written"));
      };
      expect((await send("/hooked")).status).toBe(200);
      const after = await happened(since);
      expect(after).toMatchObject({
        events: ["of before", "second"],
        deliveries: ["of before"],
        works: ["of before"],
        jobs: 1,
      });
      expect(after.lines).toEqual([
        expect.objectContaining({ msg: "effects.dropped", types: ["event deed.done"], number: 1 }),
      ]);
    },
  },
  {
    asked: "in `before` of a hook",
    next: "the commit fails, and the handler answers below 400",
    fate: "is stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      hooks = { before: (ctx) => publish(ctx, "of before") };
      deed = async (ctx) => {
        await ctx.commit([refused()], said("written")).catch(() => undefined);
        return said("gave up");
      };
      expect((await send("/hooked")).status).toBe(200);
      expect(await happened(since)).toEqual({
        events: ["of before"],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "in `commit` of a hook",
    next: "two attempts fail, the third one is written",
    fate: "happens once, with the one that is written",
    prove: async () => {
      const since = await seen();
      let attempts = 0;
      hooks = { commit: (ctx) => all(ctx, `of attempt ${++attempts}`) };
      deed = async (ctx) => {
        for (const item of [refused(), refused()])
          await ctx.commit([item], said("written")).catch(() => undefined);
        return ctx.commit([put()], said("written"));
      };
      expect((await send("/hooked")).status).toBe(200);
      expect(await happened(since)).toMatchObject({
        events: ["of attempt 3"],
        deliveries: ["of attempt 3"],
        works: ["of attempt 3"],
        jobs: 1,
      });
    },
  },
  {
    asked: "in `commit` of a hook, without `await`",
    next: "the handler returns without `ctx.commit`",
    fate: "is waited for, stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      hooks = { commit: (ctx) => void publish(ctx, "of the hook") };
      expect((await send("/hooked")).status).toBe(204);
      expect(await happened(since)).toEqual({
        events: ["of the hook"],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "by the handler, while a hook's `commit` runs",
    next: "the commit is written",
    fate: "is refused: the call throws",
    prove: async () => {
      const since = await seen();
      let [go, going]: [() => void, Promise<void>] = [() => undefined, Promise.resolve()];
      let entered: () => void = () => undefined;
      const inHook = new Promise<void>((resolve) => {
        entered = resolve;
      });
      going = new Promise<void>((resolve) => {
        go = resolve;
      });
      hooks = {
        commit: async (ctx) => {
          entered();
          await going;
          await publish(ctx, "of the hook");
        },
      };
      let message = "";
      deed = async (ctx) => {
        const committed = ctx.commit([put()], said("written"));
        await inHook;
        message = await caught(publish(ctx, "of the handler"));
        go();
        return committed;
      };
      expect((await send("/hooked")).status).toBe(200);
      expect(message).toContain("ctx.publish: the run is committing");
      expect((await happened(since)).events).toEqual(["of the hook"]);
    },
  },
  {
    asked: "in `after` of a hook",
    next: "",
    fate: "is refused: the call throws",
    prove: async () => {
      const since = await seen();
      const messages: string[] = [];
      hooks = {
        after: async (ctx) => {
          messages.push(
            await caught(publish(ctx)),
            await caught(ctx.delivery.send("notice", { text: "late" })),
            await caught(ctx.enqueue("deeds.deed.now", { text: "late" })),
          );
        },
      };
      expect((await send("/hooked")).status).toBe(204);
      for (const message of messages) expect(message).toContain("the run has committed");
      expect(messages).toHaveLength(3);
      expect(await happened(since)).toEqual({
        events: [],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "before a response with cookies",
    next: "the run holds its claim",
    fate: "is stored at the end of the run, then sent",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        return reply(said("welcome"), { cookies: { seen: { value: "1" } } });
      };
      expect((await send()).status).toBe(200);
      expect(await happened(since)).toEqual({
        events: ["done"],
        deliveries: ["done"],
        works: ["done"],
        jobs: 1,
        lines: [],
      });
    },
  },
  {
    asked: "before a response with cookies",
    next: "another run has taken over",
    fate: "is dropped, and the caller gets the other run's response",
    prove: async () => {
      const since = await seen();
      hooks = { commit: (ctx) => publish(ctx, "of the hook") };
      deed = async (ctx) => {
        await all(ctx);
        await othersAnswer();
        return reply(said("welcome"), { cookies: { seen: { value: "1" } } });
      };
      const response = await send("/hooked");
      expect([response.status, response.headers.get("set-cookie"), await response.json()]).toEqual([
        200,
        null,
        "theirs",
      ]);
      const { lines, ...rest } = await happened(since);
      expect(rest).toEqual({ events: [], deliveries: [], works: [], jobs: 0 });
      expect(lines).toMatchObject([{ msg: "effects.dropped", number: 5 }]);
    },
  },
  {
    asked: "before a response with cookies",
    next: "the run's time has run out",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      let ended = false;
      deed = async (ctx) => {
        await publish(ctx);
        await outlast(ctx.signal);
        setImmediate(() => {
          ended = true;
        });
        return reply(said("welcome"), { cookies: { seen: { value: "1" } } });
      };
      expect((await sendInTime(60_000)).statusCode).toBe(504);
      await waitFor(() => expect(ended).toBe(true));
      await turn();
      expect((await happened(since)).events).toEqual([]);
    },
  },
  {
    asked: "before `ctx.commit`",
    next: "another run has taken over",
    fate: "is dropped, and the caller gets the other run's response",
    prove: async () => {
      const since = await seen();
      deed = async (ctx) => {
        await all(ctx);
        await othersAnswer();
        return ctx.commit([put()], said("written"));
      };
      const response = await send();
      expect([response.status, await response.json()]).toEqual([200, "theirs"]);
      const { lines, ...rest } = await happened(since);
      expect([rest, await stored()]).toEqual([
        { events: [], deliveries: [], works: [], jobs: 0 },
        false,
      ]);
      expect(linesOf({ lines }, "effects.dropped")).toMatchObject([{ number: 4 }]);
    },
  },
  {
    asked: "before `ctx.commit`",
    next: "the run's time has run out",
    fate: "is dropped",
    prove: async () => {
      const since = await seen();
      let message = "";
      deed = async (ctx) => {
        await publish(ctx);
        await outlast(ctx.signal);
        message = await caught(ctx.commit([put()], said("written")));
      };
      expect((await sendInTime(60_000)).statusCode).toBe(504);
      await waitFor(() => expect(message).toBe("The request took too long"));
      expect([(await happened(since)).events, await stored()]).toEqual([[], false]);
    },
  },
  {
    asked: "by a query, for any caller",
    next: "",
    fate: "is refused: the query fails",
    prove: async () => {
      const since = await seen();
      const works: Deed[] = [
        (ctx) => publish(ctx),
        (ctx) => ctx.enqueue("deeds.deed.work", { text: "x" }),
        (ctx) => ctx.cancelJob("x"),
        (ctx) => ctx.delivery.send("notice", { text: "x" }),
        (ctx) => ctx.enqueue("deeds.deed.now", { text: "x" }, { afterCommit: false }),
        (ctx) => ctx.step("x", {}, () => 1),
        (ctx) => ctx.commit([put()], said("of the query")),
        (ctx) => void publish(ctx), // not even without `await`
      ];
      const names = [
        "publish",
        "enqueue",
        "cancelJob",
        "delivery.send",
        "enqueue",
        "step",
        "commit",
        "publish",
      ];
      for (const [index, work] of works.entries()) {
        looks = work;
        let message = "";
        deed = async (ctx) => {
          message = await caught(ctx.query("deeds.deed.look", { text: "x" }));
          return said("of the write");
        };
        const response = await send();
        expect([response.status, await response.json()]).toEqual([200, said("of the write")]);
        expect(message).toContain(`ctx.${names[index]}: a query reads`);
      }
      expect([await happened(since), await stored()]).toEqual([
        { events: [], deliveries: [], works: [], jobs: 0, lines: [] },
        false,
      ]);
    },
  },
  {
    asked: "before a second `ctx.commit`",
    next: "the first one was written",
    fate: "is refused, and the second commit before any hook runs",
    prove: async () => {
      const since = await seen();
      const seenByHooks: string[] = [];
      hooks = {
        commit: () => void seenByHooks.push("commit"),
        after: () => void seenByHooks.push("after"),
      };
      const messages: string[] = [];
      deed = async (ctx) => {
        const [, second] = await Promise.all([
          ctx.commit([put()], said("first")),
          caught(ctx.commit([], said("second"))),
        ]);
        messages.push(
          second,
          await caught(publish(ctx)),
          await caught(ctx.commit([], said("third"))),
        );
      };
      const response = await send("/hooked");
      expect([response.status, await response.json()]).toEqual([200, said("first")]);
      const once = "ctx.commit: a run commits once; put all items into one call";
      expect(messages).toEqual([once, expect.stringContaining("the run has committed"), once]);
      expect(seenByHooks).toEqual(["commit", "after"]);
      expect(await happened(since)).toEqual({
        events: [],
        deliveries: [],
        works: [],
        jobs: 0,
        lines: [],
      });
    },
  },
  {
    asked: "with `{ afterCommit: false }`",
    next: "regardless of the commit and the handler",
    fate: "happens immediately",
    prove: async () => {
      const ids: string[] = [];
      const atOnce = async (ctx: PipelineContext, words: string) => {
        const options = { afterCommit: false };
        await ctx.publish("deed.done", { text: words }, options);
        ids.push((await ctx.delivery.send("notice", { text: words }, options)).deliveryId);
        ids.push((await ctx.enqueue("deeds.deed.now", { text: words }, options)).jobId);
        const later = { ...options, delaySeconds: 3_600 };
        ids.push((await ctx.enqueue("deeds.deed.work", { text: words }, later)).jobId);
      };
      const works: Deed[] = [
        async (ctx) => {
          await atOnce(ctx, "1 before");
          await ctx.commit([refused()], said("written")).catch(() => undefined);
          await atOnce(ctx, "2 between");
          await ctx.commit([put()], said("written"));
          await atOnce(ctx, "3 after");
          throw new Error("late");
        },
        async (ctx) => {
          await atOnce(ctx, "1 then throws");
          await all(ctx, "joins, and is dropped");
          throw new Error("no");
        },
        async (ctx) => {
          await atOnce(ctx, "1 then answers 409");
          return reply(said("no"), { status: 409 });
        },
      ];
      const told: (readonly string[])[] = [];
      for (const work of works) {
        deed = work;
        const since = await seen();
        await send();
        const { events, deliveries, works: worksNow, jobs } = await happened(since);
        expect([deliveries.toSorted(), worksNow, jobs]).toEqual([events, events, events.length]);
        told.push(events);
      }
      expect(told).toEqual([
        ["1 before", "2 between", "3 after"],
        ["1 then throws"],
        ["1 then answers 409"],
      ]);
      hooks = { after: (ctx) => atOnce(ctx, "of after") };
      deed = () => undefined;
      const since = await seen();
      expect((await send("/hooked")).status).toBe(204);
      expect(await happened(since)).toEqual({
        events: ["of after"],
        deliveries: ["of after"],
        works: ["of after"],
        jobs: 1,
        lines: [],
      });
      expect(new Set(ids).size).toBe(ids.length);
    },
  },
  {
    asked: "in a step that is under way",
    next: "the handler commits or returns",
    fate: "is waited for, as the step is",
    prove: async () => {
      const since = await seen();
      const ends: string[] = [];
      const work = (ctx: PipelineContext) =>
        ctx.step("charge", {}, async () => {
          await turn();
          ends.push("step");
        });
      for (const end of ["commits", "returns"]) {
        deed = async (ctx) => {
          work(ctx);
          if (end === "commits") await ctx.commit([put()], said("written"));
          ends.push(end);
          return said("done");
        };
        expect((await send()).status).toBe(200);
        ends.push("answered");
      }
      expect(ends).toEqual(["step", "commits", "answered", "returns", "step", "answered"]);
      let message = "";
      deed = (ctx) =>
        ctx.step("commits", {}, async () => {
          message = await caught(ctx.commit([put()], said("written")));
        });
      await send();
      expect(message).toBe("ctx.commit: a step commits nothing; commit once it has returned");
      expect(await happened(since)).toMatchObject({ events: [], lines: [] });
    },
  },
];

describe("an effect", () => {
  for (const row of rows) {
    const name = [row.asked, row.next, row.fate].filter((cell) => cell !== "").join(" | ");
    test(name, () => row.prove(), 60_000);
  }

  test("is listed in the guide if and only if it is tested here", () => {
    const guide = readFileSync(new URL("../../docs/commit.md", import.meta.url), "utf8");
    const [, section = ""] = guide.split("## What becomes of effects\n");
    const table = section
      .slice(0, section.indexOf("\n## "))
      .split("\n")
      .filter((line) => line.startsWith("| "));
    const cells = table.slice(1).map((line) =>
      line
        .split("|")
        .slice(1, 4)
        .map((cell) => cell.trim()),
    );
    expect(cells).toEqual(rows.map(({ asked, next, fate }) => [asked, next, fate]));
  });
});

/** Each way to run `deed`: it resolves once the run has ended well, and rejects if it has failed. */
const carriers: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["a write that is claimed", async () => succeeded(await send())],
  ["a write that nothing claims", async () => succeeded(await app.fetch("/do", { body: {} }))],
  ["a write with hooks", async () => succeeded(await send("/hooked"))],
  [
    "a consumer",
    () => {
      const eventId = crypto.randomUUID();
      const event = {
        kind: "shared",
        type: "deed.asked",
        eventId,
        payload: { text: "x" },
        causedBy: "r",
        origRequestId: "r",
      } as const;
      return app.deliver(event);
    },
  ],
  [
    "a job",
    () => {
      const jobId = crypto.randomUUID();
      const payload = { text: "x" };
      return app.deliver({
        jobId,
        name: "deeds.deed.run",
        payload,
        causedBy: "r",
        origRequestId: "r",
        tenantId: "acme",
      });
    },
  ],
  [
    "server.run",
    async () => {
      await server.run(
        { reason: "a test", tenantId: "acme", requestId: crypto.randomUUID() },
        async (ctx) => deed(ctx),
      );
    },
  ],
  [
    "an adopted handler",
    async () => {
      stubEnvironment();
      const handler = middy({
        executionMode: requestScope(build(), {
          handler: "legacy.deed.do",
          access: access.everyone,
        }),
      })
        .use(writeOnce())
        .handler(async (_event: unknown, context) => {
          await deed((context as unknown as AdoptedContext).keelson); // safe: the scope sets it
          return { statusCode: 204 };
        });
      const headers = {
        "idempotency-key": crypto.randomUUID(),
        "content-type": "application/json",
      };
      const http = { method: "POST", sourceIp: "127.0.0.1" };
      const event = {
        version: "2.0",
        rawPath: "/do",
        rawQueryString: "",
        headers,
        requestContext: { http, stage: "$default" },
        body: "{}",
      };
      // Safe: these are the parts of the event and the context that are read.
      const { statusCode } = (await handler(event as never, {} as never)) as { statusCode: number };
      if (statusCode >= 400) throw new Error(`answered with ${statusCode}`);
    },
  ],
];
/** The server in this process, on the stack of the test app. */
function stubEnvironment(): void {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
}
function succeeded(response: Response): void {
  if (!response.ok) throw new Error(`answered with ${response.status}`);
}

describe.each(carriers)("in %s", (carrier, run) => {
  test("events published for a failed commit are dropped, and those for the next one are sent", async () => {
    const since = await seen();
    deed = async (ctx) => {
      for (const attempt of [1, 2, 3]) {
        await publish(ctx, `attempt ${attempt}`);
        const failed = await ctx.commit([attempt === 3 ? put() : refused()], undefined).then(
          () => undefined,
          (error: unknown) => error,
        );
        if (failed === undefined) return;
        expect(failed).toBeInstanceOf(CommitConditionError);
      }
    };
    await run();
    expect((await happened(since)).events).toEqual(["attempt 3"]);
  });

  test("effects are never sent once their commit was given up", async () => {
    const since = await seen();
    deed = async (ctx) => {
      await all(ctx);
      await ctx.commit([refused()], undefined).catch(() => undefined);
    };
    await run();
    const { lines, ...rest } = await happened(since);
    expect(rest).toEqual({ events: [], deliveries: [], works: [], jobs: 0 });
    // The others write to the output of this process.
    if (!["an adopted handler", "server.run"].includes(carrier))
      expect(lines).toMatchObject([{ msg: "effects.dropped", number: 4 }]);
  });

  test("un-awaited effects are stored with the commit, and an un-awaited commit that fails also fails the run", async () => {
    const since = await seen();
    deed = async (ctx) => {
      publish(ctx, "forgotten");
      ctx.commit([put()], undefined);
    };
    await run();
    expect((await happened(since)).events).toEqual(["forgotten"]);
    deed = (ctx) => void ctx.commit([refused()], undefined);
    await expect(run()).rejects.toThrow();
  });

  test("effects of a run that throws are dropped", async () => {
    const since = await seen();
    deed = async (ctx) => {
      await all(ctx);
      throw new Error("no");
    };
    await expect(run()).rejects.toThrow();
    expect(await happened(since)).toEqual({
      events: [],
      deliveries: [],
      works: [],
      jobs: 0,
      lines: [],
    });
  });
});

test("reusing a key after it has expired is a new write: its events, jobs, deliveries and steps have other IDs", async () => {
  const ids: string[][] = [];
  let charged = 0;
  deed = async (ctx) => {
    const { jobId } = await ctx.enqueue("deeds.deed.work", { text: `now ${runs} ${ids.length}` });
    const later = await ctx.enqueue("deeds.deed.work", { text: "later" }, { delaySeconds: 60 });
    await publish(ctx, `use ${ids.length}`);
    await ctx.delivery.send("notice", { text: `use ${ids.length}` });
    const key = await ctx.step("charge", { ifUnknown: "retry" }, (stepKey) => {
      charged += 1;
      return stepKey;
    });
    ids.push([jobId, later.jobId.slice(-20), String(key)]);
    return ctx.commit([put(`${runs} ${ids.length}`)], said("written"));
  };
  const headers = { "x-request-id": `constant-${runs}` };
  const since = await seen();
  const deliveries = app.deliveries.length;
  for (let use = 0; use < 3; use += 1) {
    expect((await send("/do", headers)).status).toBe(200);
    await app.settled();
    app.clock.advance(6 * 60_000);
  }
  expect(new Set(ids.flat()).size).toBe(9);
  expect(charged).toBe(3);
  const after = await happened(since);
  expect([after.events, after.deliveries]).toEqual([
    ["use 0", "use 1", "use 2"],
    ["use 0", "use 1", "use 2"],
  ]);
  expect(new Set(app.deliveries.slice(deliveries).map(({ id }) => id)).size).toBe(3);
});

test("more effects than a commit holds fail it, and none of them happens; immediate ones have no limit", async () => {
  const since = await seen();
  const names = Array.from({ length: 101 }, (_, index) => `fan-out ${runs} ${index}`);
  const enqueueAll = (options: EffectOptions) => async (ctx: PipelineContext) => {
    for (const name of names) await ctx.enqueue("deeds.deed.now", { text: name }, options);
  };
  deed = enqueueAll({});
  expect((await send()).status).toBe(500);
  expect(app.logs.findLast(({ msg }) => msg === "request.failed")).toMatchObject({
    message: expect.stringContaining("more than the 100 of a transaction"),
  });
  expect((await happened(since)).works).toEqual([]);
  deed = enqueueAll({ afterCommit: false });
  expect((await send()).status).toBe(204);
  expect((await happened(since)).works).toEqual(names.toSorted());
});

test("jobs of one run with the same ordering key run in the order in which they were enqueued", async () => {
  const names = Array.from({ length: 9 }, (_, index) => `line ${runs} ${index + 1}`);
  deed = async (ctx) => {
    for (const name of names) await ctx.enqueue("deeds.deed.line", { text: name });
  };
  app.faults.before("SendMessage", 1).delay(300);
  const { length } = worked;
  expect((await send()).status).toBe(204);
  await app.settled();
  expect(worked.slice(length)).toEqual(names);
});

test("a run that repeats a failed one uses the same IDs", async () => {
  const ids: string[] = [];
  let fails = true;
  deed = async (ctx) => {
    ids.push((await ctx.enqueue("deeds.deed.work", { text: `repeat ${runs}` })).jobId);
    if (fails) throw new Error("not yet");
    return said("done");
  };
  const headers = { "idempotency-key": `repeat-${runs}` };
  for (let times = 0; times < 2; times += 1) expect((await send("/do", headers)).status).toBe(500);
  fails = false;
  expect((await send("/do", headers)).status).toBe(200);
  expect(new Set(ids).size).toBe(1);
});

test("takeOver acts as a run of another process", async () => {
  deed = async (ctx) => {
    await takeOver();
    await publish(ctx);
    return reply(said("welcome"), { cookies: { seen: { value: "1" } } });
  };
  const since = await seen();
  const sent = send();
  const waiting = setInterval(() => app.clock.advance(500), 20);
  // The other run has not answered: the caller is told to come again.
  expect((await sent.finally(() => clearInterval(waiting))).status).toBe(409);
  expect((await happened(since)).events).toEqual([]);
});
