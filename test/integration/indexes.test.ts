import { randomUUID } from "node:crypto";
import { PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { buildServer, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";

const notes = defineFeature("notes", (r) => {
  const table = r.table("indexed-notes", {
    partitionKey: "pk",
    sortKey: "sk",
    indexes: {
      byOwner: { partitionKey: "owner", sortKey: "createdAt" },
      byState: { partitionKey: "state", project: ["title"] },
    },
    tenant: false,
  });

  r.write("note.create", {
    input: z.object({ title: z.string(), state: z.string().optional(), createdAt: z.string() }),
    handler: async (ctx, note) => {
      const Item = {
        pk: ctx.user.tenantId,
        sk: randomUUID(),
        owner: ctx.user.id,
        body: "long",
        ...note,
      };
      return ctx.commit([{ Put: { TableName: table.name, Item } }], {});
    },
  });

  r.write("note.import", {
    input: z.object({ title: z.string(), createdAt: z.string() }),
    handler: async (ctx, note) => {
      const Item = { pk: ctx.user.tenantId, sk: randomUUID(), owner: ctx.user.id, ...note };
      await ctx.db.send(new PutCommand({ TableName: table.name, Item }));
      return {};
    },
  });

  r.query("note.mine", {
    input: z.object({ after: z.string() }),
    handler: async (ctx, { after }) => {
      const query = new QueryCommand({
        TableName: table.name,
        IndexName: table.index("byOwner"),
        KeyConditionExpression: "#owner = :owner AND createdAt > :after",
        ExpressionAttributeNames: { "#owner": "owner" },
        ExpressionAttributeValues: { ":owner": ctx.user.id, ":after": after },
        ScanIndexForward: false,
      });
      return (await ctx.db.send(query)).Items?.map(({ title, body }) => ({ title, body })) ?? [];
    },
  });

  r.query("note.open", {
    handler: async (ctx) => {
      const query = new QueryCommand({
        TableName: table.name,
        IndexName: table.index("byState"),
        KeyConditionExpression: "#state = :state",
        ExpressionAttributeNames: { "#state": "state" },
        ExpressionAttributeValues: { ":state": "open" },
      });
      return (await ctx.db.send(query)).Items?.map((item) => Object.keys(item).toSorted()) ?? [];
    },
  });
});

const caller = (id: string) => ({ id, tenantId: "acme" });
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app.close());

test("handlers query the declared indexes of their tables, in the order of their sort keys", async () => {
  const [ann, bob] = [caller("ann"), caller("bob")];
  await app.call("notes.note.create", { title: "first", createdAt: "2026-01-01" }, { as: ann });
  await app.call(
    "notes.note.create",
    { title: "second", createdAt: "2026-02-01", state: "open" },
    { as: ann },
  );
  await app.call("notes.note.import", { title: "third", createdAt: "2026-03-01" }, { as: ann });
  await app.call("notes.note.create", { title: "other", createdAt: "2026-03-01" }, { as: bob });

  // An index is eventually consistent everywhere.
  const mine = () => app.call("notes.note.mine", { after: "2026-01-01" }, { as: ann });
  await expect.poll(mine).toEqual([{ title: "third" }, { title: "second", body: "long" }]);
  const open = () => app.call("notes.note.open", {}, { as: bob });
  await expect.poll(open).toEqual([["pk", "sk", "state", "title"]]);
  expect(await app.call("notes.note.mine", { after: "2026-01-01" }, { as: bob })).toHaveLength(1);
});
