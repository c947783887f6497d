import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, defineFeature } from "../../src/index.ts";
import { crashEverywhere, type TestApp } from "../../src/tools/testing/index.ts";

const shelf = defineFeature("shelf", (r) => {
  const table = r.table("books", { partitionKey: "pk", tenant: false });
  const space = r.quota("space", { limit: 10, window: "month", timeZone: "Europe/Berlin" });
  r.write("book.put", {
    route: "PUT /books/:id",
    access: access.tenant,
    input: z.object({ id: z.string(), size: z.int() }),
    handler: async (ctx, { id, size }) => {
      await space.add(ctx, size);
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: id, size } } }], { id });
    },
  });
  return { space };
});
const ann = { id: "ann", tenantId: "acme" };
const server = buildServer({ features: [shelf] });

const put = (app: TestApp, id: string, size: number) => {
  const headers = { "idempotency-key": id };
  return app.fetch(`/books/${id}`, { method: "PUT", body: { size }, as: ann, headers });
};
/** Size of the stored book, if it exists. */
const stored = async (app: TestApp, id: string) => {
  const context = await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] });
  const database = context.acrossTenants("a test");
  const { Item } = await database.send(
    new GetCommand({ TableName: "keelson-books", Key: { pk: id }, ConsistentRead: true }),
  );
  return Item?.["size"];
};
const used = async (app: TestApp) => (await shelf.space.get(await app.ctx(ann))).used;

test("wherever the process crashes, usage and effect are written together, once", async () => {
  const cuts = await crashEverywhere(server, {
    arrange: async (app) => void (await put(app, "first", 4)),
    act: (app) => put(app, "second", 5),
    check: async (app, answer) => {
      expect((answer as Response).status).toBe(200);
      expect([await used(app), await stored(app, "second")]).toEqual([9, 5]);
    },
  });
  expect(cuts.length).toBeGreaterThan(3);
});

test("wherever the process crashes, a refused commit does not count, nor does its retry", async () => {
  await crashEverywhere(server, {
    arrange: async (app) => void (await put(app, "first", 4)),
    act: (app) => put(app, "second", 7),
    check: async (app, answer) => {
      expect((answer as Response).status).toBe(429);
      expect([await used(app), await stored(app, "second")]).toEqual([4, undefined]);
    },
  });
});

test("wherever the process crashes, returned usage never goes below 0", async () => {
  await crashEverywhere(server, {
    arrange: async (app) => void (await put(app, "first", 4)),
    act: (app) => put(app, "second", -6),
    check: async (app, answer) => {
      expect((answer as Response).status).toBe(200);
      expect([await used(app), await stored(app, "second")]).toEqual([0, -6]);
    },
  });
});
