import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig, createUserConfig } from "../../parts/config/declare/declaration.ts";
import { QuotaExceededError } from "../../parts/limits/quota-error.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";
import type { PipelineContext } from "./pipeline-context.ts";
import type { Quota, QuotaContext, QuotaUsage } from "./quota.ts";

type Work = (ctx: PipelineContext, quotas: Quotas) => unknown;
interface Quotas {
  readonly storage: Quota;
  readonly mails: Quota;
  readonly seats: Quota;
  readonly odd: Quota;
}
let work: Work = () => undefined;
let hook: (ctx: QuotaContext) => Promise<void> = async () => undefined;

const box = defineFeature("box", (r) => {
  const config = r.config({
    keys: {
      storageMb: createTenantConfig("number", { default: 10, bounds: { min: 0, max: 100 } }),
      nothing: createTenantConfig("number"),
    },
  });
  const table = r.table("boxes", { partitionKey: "pk", tenant: false });
  const quotas: Quotas = {
    storage: r.quota("storage", { limit: config.storageMb, window: "forever", status: 402 }),
    mails: r.quota("mails", { limit: 3, window: "day", timeZone: "Europe/Berlin" }),
    seats: r.quota("seats", { limit: 2, window: "month" }),
    odd: r.quota("odd", { limit: config.nothing as never, window: "forever" }),
  };
  const options = { access: access.everyone, once: false as const };
  const written = r.write("box.do", {
    route: "POST /do",
    ...options,
    handler: async (ctx) => (await work(ctx, quotas)) ?? {},
  });
  r.write("box.commit", {
    route: "POST /commit",
    access: access.everyone,
    handler: async (ctx) => {
      await work(ctx, quotas);
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: "box" } } }], {});
    },
  });
  r.query("box.look", {
    route: "GET /look",
    access: access.everyone,
    // Safe cast: the error of a change in a query is asserted.
    handler: async (ctx) => (await work(ctx as PipelineContext, quotas)) ?? {},
  });
  r.hook(written, { before: (ctx) => hook(ctx) });
  r.job("box.fill", {
    input: z.object({ number: z.number() }),
    handler: (ctx, { number }) => quotas.storage.add(ctx, number),
  });
  return { quotas };
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [box] }));
});
afterAll(() => app.close());

let tenants = 0;
const newUser = () => ({ id: "ann", tenantId: `t/${++tenants}` });
const storageKey = "box:config:storage-mb";

async function ask(
  path: string,
  as: ReturnType<typeof newUser> | undefined,
  given: Work,
  headers: Record<string, string> = {},
) {
  work = given;
  const method = path === "/look" ? "GET" : "POST";
  const body = method === "GET" ? {} : { body: {} };
  const answer = await app.fetch(path, { method, headers, ...body, ...(as && { as }) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}
const usage = async (as: ReturnType<typeof newUser>, name: keyof Quotas = "storage") => {
  const { body } = await ask("/look", as, (ctx, quotas) => quotas[name].get(ctx));
  return body as unknown as Omit<QuotaUsage, "resetsAt"> & { resetsAt?: string };
};
const lastError = () => app.logs.findLast(({ msg }) => msg === "request.failed")?.["message"];

describe("a quota", () => {
  test("counts with the commit, up to its limit and not above", async () => {
    const as = newUser();
    expect(await usage(as)).toEqual({ used: 0, limit: 10 });
    expect((await ask("/commit", as, (ctx, { storage }) => storage.add(ctx, 8))).status).toBe(200);
    const refused = await ask("/commit", as, (ctx, { storage }) => storage.add(ctx, 3));
    expect(refused).toMatchObject({
      status: 402,
      body: {
        error: "quota_exceeded",
        message: "The quota box.storage is exceeded: 8 of 10 are used",
        details: { quota: "box.storage", used: 8, limit: 10 },
      },
    });
    expect((await ask("/do", as, (ctx, { storage }) => storage.add(ctx, 2))).status).toBe(200);
    expect(await usage(as)).toEqual({ used: 10, limit: 10 });
    expect(await usage(newUser())).toEqual({ used: 0, limit: 10 });
  });

  test("refuses the whole commit, after which the same key works once there is room", async () => {
    const as = newUser();
    const [key, many] = [{ "idempotency-key": "k1" }, 11];
    const add: Work = (ctx, { storage }) => storage.add(ctx, many);
    expect((await ask("/commit", as, add, key)).status).toBe(402);
    await app.rows.put({ scope: "tenant", tenantId: as.tenantId, key: storageKey, value: 20 });
    expect((await ask("/commit", as, add, key)).status).toBe(200);
    expect((await ask("/commit", as, add, key)).status).toBe(200); // a replay
    expect(await usage(as)).toEqual({ used: 11, limit: 20 });
    await app.rows.put({ scope: "tenant", tenantId: as.tenantId, key: storageKey, value: 5 });
    expect((await ask("/commit", as, (ctx, { storage }) => storage.add(ctx, 1))).status).toBe(402);
    expect(await usage(as)).toEqual({ used: 11, limit: 5 });
  });

  test("gives back, down to 0, and merges the changes of a commit", async () => {
    const as = newUser();
    const change = (...numbers: number[]) =>
      ask("/commit", as, async (ctx, { storage }) => {
        for (const number of numbers) await storage.add(ctx, number);
      });
    await change(-3);
    expect((await usage(as)).used).toBe(0);
    await change(4, 3);
    await change(-2);
    expect((await usage(as)).used).toBe(5);
    await change(12, -9);
    expect((await usage(as)).used).toBe(8);
    await change(5, -5, 0);
    expect((await usage(as)).used).toBe(8);
    await change(-50);
    expect((await usage(as)).used).toBe(0);
  });

  test("is corrected by `set`, in any direction", async () => {
    const as = newUser();
    const set = (used: number, more = 0) =>
      ask("/commit", as, async (ctx, { storage }) => {
        await storage.add(ctx, 9);
        await storage.set(ctx, used);
        await storage.add(ctx, more);
      });
    await set(40);
    expect((await usage(as)).used).toBe(40);
    await set(7, 2);
    expect((await usage(as)).used).toBe(9);
    await set(1, -2);
    expect((await usage(as)).used).toBe(0);
  });

  test("adds to a correction of the same commit only up to its limit", async () => {
    const as = newUser();
    const change = (used: number, more: number) =>
      ask("/commit", as, async (ctx, { storage }) => {
        await storage.set(ctx, used);
        await storage.add(ctx, more);
      });
    const details = { quota: "box.storage", used: 9, limit: 10 };
    expect(await change(9, 5)).toMatchObject({ status: 402, body: { details } });
    expect((await usage(as)).used).toBe(0);
    expect((await change(9, 1)).status).toBe(200);
    expect((await usage(as)).used).toBe(10);
    expect((await change(40, -5)).status).toBe(200);
    expect((await usage(as)).used).toBe(35);
  });

  test("does not count changes that a failed handler, a failed commit or an error answer drops", async () => {
    const as = newUser();
    await ask("/do", as, async (ctx, { storage }) => {
      await storage.add(ctx, 1);
      throw new Error("broken");
    });
    const condition = { ConditionExpression: "attribute_exists(pk)" };
    const TableName = app.env["KEELSON_TABLE_BOXES"] ?? "keelson-boxes";
    const failing = { Put: { TableName, Item: { pk: "none" }, ...condition } };
    const answer = await ask("/do", as, async (ctx, { storage }) => {
      await storage.add(ctx, 2);
      return ctx.commit([failing], {}).catch(async () => {
        await storage.add(ctx, 4);
        return ctx.commit([], {});
      });
    });
    expect(answer.status).toBe(200);
    expect((await usage(as)).used).toBe(4);
    expect(app.logs.findLast(({ msg }) => msg === "effects.dropped")).toMatchObject({
      types: ["quota box.storage"],
    });
  });

  test("counts in a hook, a job and `app.ctx`, and without an await", async () => {
    const as = newUser();
    hook = (ctx) => box.quotas.storage.add(ctx, 1);
    await ask("/do", as, (ctx, { storage }) => void storage.add(ctx, 1));
    hook = async () => undefined;
    expect((await usage(as)).used).toBe(2);
    await ask("/commit", as, (ctx) => ctx.enqueue("box.box.fill" as never, { number: 3 } as never));
    await app.settled();
    expect((await usage(as)).used).toBe(5);
    const ctx = await app.ctx(as);
    await box.quotas.storage.add(ctx, 4);
    expect(await box.quotas.storage.get(ctx)).toEqual({
      used: 9,
      limit: 10,
      resetsAt: undefined,
    });
    await expect(box.quotas.storage.add(ctx, 4)).rejects.toThrow();
  });

  test("starts again with the next day or month of its time zone", async () => {
    const as = newUser();
    const add: Work = async (ctx, { mails, seats }) => {
      await mails.add(ctx, 2);
      await seats.add(ctx, 1);
    };
    await ask("/commit", as, add);
    const { resetsAt = "" } = await usage(as, "mails");
    expect(Date.parse(resetsAt) - app.clock.now()).toBeGreaterThan(0);
    expect(Date.parse(resetsAt) - app.clock.now()).toBeLessThanOrEqual(25 * 3_600_000);
    const refused = await ask("/commit", as, add);
    expect(refused).toMatchObject({
      status: 429,
      body: { details: { quota: "box.mails", used: 2, limit: 3, resetsAt } },
    });
    expect(await usage(as, "seats")).toMatchObject({ used: 1, limit: 2 });
    app.clock.advance(Date.parse(resetsAt) - app.clock.now());
    expect((await usage(as, "mails")).used).toBe(0);
    const month = (await usage(as, "seats")).resetsAt ?? "";
    app.clock.advance(Date.parse(month) - app.clock.now());
    expect((await usage(as, "seats")).used).toBe(0);
  });

  test.each<[string, Work, string, string?]>([
    ["half a number", (ctx, { storage }) => storage.add(ctx, 0.5), "0.5 is not a whole number"],
    ["text", (ctx, { storage }) => storage.add(ctx, "1" as never), "is not a whole number"],
    [
      "a number that is missing",
      (ctx, { storage }) => storage.add(ctx, undefined as never),
      "undefined is not a whole number",
    ],
    [
      "a correction that is missing",
      (ctx, { storage }) => storage.set(ctx, undefined as never),
      "undefined is not a whole number from 0",
    ],
    ["a negative correction", (ctx, { storage }) => storage.set(ctx, -1), "whole number from 0"],
    ["a copied ctx", (ctx, { storage }) => storage.add({ ...ctx }, 1), "not a copy"],
    ["a key without a value", (ctx, { odd }) => odd.add(ctx, 1), "its limit is undefined"],
    ["a query", (ctx, { storage }) => storage.add(ctx, 1), "a query reads", "/look"],
  ])("does not count with %s", async (_, given, message, path = "/do") => {
    const as = newUser();
    expect((await ask(path, as, given)).status).toBe(500);
    expect(lastError()).toContain(message);
    expect((await usage(as)).used).toBe(0);
  });

  test("does not count after the commit", async () => {
    const as = newUser();
    await ask("/do", as, async (ctx, { storage }) => {
      await ctx.commit([], {});
      await expect(storage.add(ctx, 1)).rejects.toThrow(
        /^quota.add: the run has committed; add before ctx.commit, and in a hook before `after`$/,
      );
    });
    expect((await usage(as)).used).toBe(0);
  });

  test("does not count without a tenant", async () => {
    const { status } = await ask("/do", undefined, (ctx, { storage }) => storage.add(ctx, 1));
    expect([status, lastError()]).toEqual([
      500,
      "quota box.storage: this run has no tenant, and quotas count by tenant",
    ]);
  });

  test("is exact under concurrency", async () => {
    const as = newUser();
    work = (ctx, { storage }) => storage.add(ctx, 1);
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => app.fetch("/commit", { body: {}, as })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(20);
    expect((await usage(as)).used).toBe(10);
  });
});

test("its error is a typed one with details", () => {
  const error = new QuotaExceededError({ quota: "box.mails", used: 3, limit: 3 });
  expect([error.name, error.code, error.status, error.details.used]).toEqual([
    "QuotaExceededError",
    "quota_exceeded",
    429,
    3,
  ]);
});

test("wrong options are boot problems", () => {
  const broken = defineFeature("broken", (r) => {
    const config = r.config({
      keys: {
        text: createTenantConfig("text", { default: "" }),
        own: createUserConfig("number", { default: 1 }),
      },
    });
    r.quota("Mails", { limit: -1, window: "week" as never, status: 400 as never });
    r.quota("a", { limit: config.text as never, window: "day", timeZone: "+02:00" });
    r.quota("b", { limit: config.own, window: "day" });
    r.quota("b", { limit: { definition: 1 } as never, window: "day", per: 1 } as never);
  });
  const problems = () => buildServer({ features: [broken] });
  for (const rule of ["name", "limit", "window", "time-zone", "status"])
    expect(problems).toThrow(`quota-${rule}`);
  expect(problems).toThrow("duplicate-quota");
  expect(problems).toThrow('unknown option "per"');
});
