import { GetCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { signToken } from "../../base/identity/token.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { type AdoptedContext, requestScope, writeOnce } from "./middy.ts";

const scanSchema = z.object({ key: z.string() });

declare module "../../base/types/names.ts" {
  interface Jobs {
    "effects.file.scan": z.input<typeof scanSchema>;
  }
}

let scanned: unknown[] = [];
const feature = defineFeature("effects", (r) => {
  const table = r.table("files", { partitionKey: "pk", tenant: false });
  r.job("file.scan", {
    input: scanSchema,
    handler: async ({ user }, { key }) => void scanned.push([user.tenantId, key]),
  });
  return { table };
});
const secret = "a secret that is long enough for these tests";
const server = buildServer({ features: [feature], auth: { secret } });

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
let lines: Record<string, unknown>[] = [];
beforeEach(() => {
  [scanned, lines] = [[], []];
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    lines.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

type Ctx = AdoptedContext["keelson"];

/** Calls an existing function that has been adopted. Its server is another copy of the app's. */
function adopted(existing: (ctx: Ctx) => unknown, use: middy.MiddlewareObj[] = []) {
  const own = buildServer({ features: [feature], auth: { secret } });
  const mode = requestScope(own, { handler: "legacy.file.import", access: access.everyone });
  const handler = middy({ executionMode: mode })
    .use(use)
    .handler((async (_event: unknown, { keelson }: AdoptedContext) => existing(keelson)) as never);
  return (event: object): Promise<unknown> =>
    handler(event as never, {} as never) as Promise<unknown>;
}
const put = (pk: string) => [{ Put: { TableName: feature.table.name, Item: { pk } } }];
const isThere = (pk: string) =>
  server.run({ reason: "a look" }, async ({ db }) => {
    const { Item } = await db.send(
      new GetCommand({ TableName: feature.table.name, Key: { pk }, ConsistentRead: true }),
    );
    return Item !== undefined;
  });

describe("an adopted handler for an event that is not HTTP", () => {
  const sqs = { Records: [{ eventSource: "aws:sqs", body: "{}" }] };
  const scan = (ctx: Ctx, key: string) =>
    ctx.enqueue("effects.file.scan", { key }, { tenantId: "acme" });

  test("commits, and enqueues jobs that run", async () => {
    const call = adopted(async (ctx) => {
      await scan(ctx, "committed");
      await ctx.commit(put("committed"), "kept");
      return { batchItemFailures: [] };
    });
    expect(await call(sqs)).toEqual({ batchItemFailures: [] });
    await app.settled();

    expect([await isThere("committed"), scanned]).toEqual([true, [["acme", "committed"]]]);
  });

  test("enqueues without a commit of its own", async () => {
    const call = adopted(async (ctx) => {
      await scan(ctx, "alone");
      return "done";
    });
    expect(await call(sqs)).toBe("done");
    await app.settled();

    expect(scanned).toEqual([["acme", "alone"]]);
  });

  test("leaves nothing behind when it throws before the commit", async () => {
    const call = adopted(async (ctx) => {
      await scan(ctx, "thrown");
      throw new ConflictError("poison");
    });
    await expect(call(sqs)).rejects.toMatchObject({ code: "poison" });
    await app.settled();

    expect(scanned).toEqual([]);
  });

  test("rejects when it throws after the commit, so that its source retries", async () => {
    const call = adopted(async (ctx) => {
      await ctx.commit(put("late"), { imported: 1 });
      throw new Error("too late");
    });
    await expect(call(sqs)).rejects.toThrow("too late");
    expect(await isThere("late")).toBe(true);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: "once.threw_after_commit", message: "too late" }),
    );
  });

  test("rejects when it commits for each record", async () => {
    const call = adopted(async (ctx) => {
      for (const name of ["one", "two"]) await ctx.commit(put(name), undefined);
    });
    await expect(call(sqs)).rejects.toThrow("commits once");
    expect(await Promise.all([isThere("one"), isThere("two")])).toEqual([true, false]);
  });
});

describe("an adopted HTTP handler that commits", () => {
  const request = async (idempotencyKey?: string) => ({
    version: "2.0",
    rawPath: "/files",
    rawQueryString: "",
    headers: {
      authorization: `Bearer ${await signToken(
        { secret, tenantId: "acme", userId: "ann", roles: [] },
        { now: () => Date.now() },
      )}`,
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    },
    requestContext: { http: { method: "POST", sourceIp: "127.0.0.1" }, stage: "$default" },
    body: "{}",
    isBase64Encoded: false,
  });
  const created = { statusCode: 201, headers: {}, body: "created" };
  const cors: middy.MiddlewareObj = {
    after: ({ response }) => {
      response.headers["access-control-allow-origin"] = "https://app.example";
    },
  };
  const allowed = { "access-control-allow-origin": "https://app.example" };
  const committing = (ctx: Ctx) => ctx.commit(put(ctx.requestId), { ...created, headers: {} });

  test("keeps what its middlewares did to the response", async () => {
    expect(await adopted(committing, [cors])(await request())).toMatchObject({
      ...created,
      headers: allowed,
    });
  });

  test("with writeOnce, a retry gets the committed response without the middlewares", async () => {
    const call = adopted(committing, [cors, writeOnce() as middy.MiddlewareObj]);
    const first = await call(await request("k1"));
    const again = await call(await request("k1"));

    expect(first).toMatchObject({ ...created, headers: allowed });
    expect(again).toMatchObject({ ...created, headers: { "idempotent-replayed": "true" } });
    expect(again).not.toMatchObject({ headers: allowed });
  });

  test.each<[string, (ctx: Ctx) => unknown, middy.MiddlewareObj]>([
    [
      "the handler throws afterwards, whatever a middleware answers",
      async (ctx) => {
        await committing(ctx);
        throw new Error("too late");
      },
      { onError: () => ({ statusCode: 500 }) as never },
    ],
    [
      "the handler throws afterwards, without a middleware that answers",
      async (ctx) => {
        await committing(ctx);
        throw new Error("too late");
      },
      { after: () => {} },
    ],
    [
      "an after middleware throws, and another one answers",
      committing,
      {
        after: () => {
          throw new Error("no room");
        },
        onError: () => ({ statusCode: 500 }) as never,
      },
    ],
    [
      "a middleware leaves no valid response",
      committing,
      { after: () => ({ statusCode: 1 }) as never },
    ],
  ])("answers with the committed response if %s", async (_, existing, middleware) => {
    expect(await adopted(existing, [middleware])(await request())).toMatchObject(created);
    expect(lines.filter(({ level }) => level === "error")).toHaveLength(1);
  });

  test("answers with its own response if the commit fails", async () => {
    const refused = async (ctx: Ctx) => {
      const ConditionExpression = "attribute_exists(pk)";
      const [item] = put("absent");
      const items = [{ Put: { ...item?.Put, ConditionExpression } }];
      await ctx.commit(items as ReturnType<typeof put>, created).catch(() => undefined);
      return { statusCode: 409, headers: {} };
    };
    expect(await adopted(refused, [cors])(await request())).toMatchObject({
      statusCode: 409,
      headers: allowed,
    });
  });
});
