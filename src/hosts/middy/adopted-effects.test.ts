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
import { type AdoptedContext, requestScope } from "./middy.ts";

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

  test("returns the committed result when it throws after the commit", async () => {
    const call = adopted(async (ctx) => {
      await ctx.commit(put("late"), { imported: 1 });
      throw new Error("too late");
    });
    expect(await call(sqs)).toEqual({ imported: 1 });
    expect(await isThere("late")).toBe(true);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: "once.threw_after_commit", message: "too late" }),
    );
  });
});
