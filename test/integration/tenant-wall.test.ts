import { GetCommand, paginateQuery, QueryCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, defineFeature, type PipelineContext } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

const box = defineFeature("box", (r) => {
  const files = r.table("files", {
    partitionKey: "pk",
    sortKey: "sk",
    tenant: true,
    indexes: { byOwner: { partitionKey: "owner", sortKey: "sk" } },
  });
  const log = r.table("log", { partitionKey: "id", tenant: false });
  const Named = z.object({ name: z.string(), tenant: z.string().optional() });

  const rowOf = async (ctx: PipelineContext, name: string) => ({
    ...(await files.key(ctx, "files", name)),
    name,
    owner: await files.value(ctx, String(ctx.user.id)),
  });
  r.write("file.create", {
    route: "POST /files",
    access: access.authenticated,
    input: Named,
    handler: async (ctx, { name }) =>
      ctx.commit([{ Put: { TableName: files.name, Item: await rowOf(ctx, name) } }], { name }),
  });
  r.query("file.list", {
    route: "GET /files",
    access: access.authenticated,
    handler: async (ctx) => {
      const { pk } = await files.key(ctx, "files");
      const names: unknown[] = [];
      const input = {
        TableName: files.name,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": pk },
      };
      for await (const { Items = [] } of paginateQuery({ client: ctx.db, pageSize: 1 }, input)) {
        names.push(...Items.map((item) => item["name"]));
      }
      const owned = await ctx.db.send(
        new QueryCommand({
          TableName: files.name,
          IndexName: files.index("byOwner"),
          KeyConditionExpression: "#owner = :owner",
          ExpressionAttributeNames: { "#owner": "owner" },
          ExpressionAttributeValues: { ":owner": await files.value(ctx, String(ctx.user.id)) },
        }),
      );
      return { names, owned: owned.Count };
    },
  });
  // A handler that takes the tenant from its input, as a mistake would have it.
  r.query("file.peek", {
    route: "GET /peek",
    access: access.everyone,
    input: Named,
    handler: async (ctx, { name, tenant }) => {
      const Key = await files.key({ user: { tenantId: tenant } }, "files", name);
      return (await ctx.db.send(new GetCommand({ TableName: files.name, Key }))).Item;
    },
  });
  r.write("file.plant", {
    route: "POST /plant",
    access: access.authenticated,
    input: Named,
    handler: async (ctx, { name, tenant }) => {
      const row = {
        ...(await rowOf(ctx, name)),
        owner: await files.value({ user: { tenantId: tenant } }, "gil"),
      };
      return ctx.commit([{ Put: { TableName: files.name, Item: row } }], { name });
    },
  });
  r.query("file.all", {
    route: "GET /all",
    access: access.authenticated,
    handler: async (ctx) => {
      const { Items = [] } = await ctx
        .acrossTenants("support")
        .send(new ScanCommand({ TableName: files.name }));
      return { names: Items.map((item) => item["name"]).sort() };
    },
  });
  r.write("report.ask", {
    route: "POST /reports",
    access: access.everyone,
    input: Named,
    handler: async (ctx, input) => {
      await ctx.enqueue("box.report.make" as never, input as never);
      return {};
    },
  });
  r.job("report.make", {
    input: Named,
    handler: async (ctx: PipelineContext, { name }: z.infer<typeof Named>) => {
      const db = name === "all" ? ctx.acrossTenants("report") : ctx.db;
      const input =
        name === "all"
          ? new ScanCommand({ TableName: files.name, Select: "COUNT" })
          : new QueryCommand({
              TableName: files.name,
              Select: "COUNT",
              KeyConditionExpression: "pk = :pk",
              ExpressionAttributeValues: { ":pk": `${name}/files` },
            });
      const { Count } = await db.send(input as QueryCommand);
      ctx.log.info("report.made", { count: Count });
    },
  });
  return { files, log };
});

const ann = { id: "ann", tenantId: "acme" };
const gil = { id: "gil", tenantId: "globex" };
const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };

const server = buildServer({ features: [box] });
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
  for (const name of ["a", "b"]) await app.call("box.file.create", { name }, { as: ann });
  await app.call("box.file.create", { name: "g" }, { as: gil });
});
afterAll(() => app.close());

const logged = (msg: string) => app.logs.filter((record) => record["msg"] === msg);

test("each tenant creates and lists its own rows over HTTP, by table and index, page by page", async () => {
  const created = await app.fetch("/files", { as: { ...ann, id: "bob" }, body: { name: "c" } });
  expect(created.status).toBe(200);
  const list = async (as: typeof ann) => (await app.fetch("/files", { as })).json();
  expect(await list(ann)).toEqual({ names: ["a", "b", "c"], owned: 2 });
  expect(await list(gil)).toEqual({ names: ["g"], owned: 1 });
  expect(await list({ id: "ann", tenantId: "acme2" })).toEqual({ names: [], owned: 0 });
});

test("a handler that names another tenant's row answers 403, and logs the reason", async () => {
  const before = logged("tenant.wall").length;
  const response = await app.fetch("/peek?name=g&tenant=globex", { as: ann });
  expect(response.status).toBe(403);
  expect(await response.json()).toMatchObject({
    error: "access_denied",
    message: "Access denied: tenant.wall",
  });
  expect((await app.fetch("/peek?name=g&tenant=globex")).status).toBe(403);
  expect(await (await app.fetch("/peek?name=a&tenant=acme", { as: ann })).json()).toMatchObject({
    pk: "acme/files",
    name: "a",
  });
  expect(logged("tenant.wall").slice(before)).toEqual([
    expect.objectContaining({
      level: "error",
      tenantId: "acme",
      handler: "box.file.peek",
      table: "files",
      operation: "GetItem",
    }),
    expect.objectContaining({ level: "error", reason: "the run has no tenant" }),
  ]);
});

test("a commit cannot insert a row into another tenant's index", async () => {
  const response = await app.fetch("/plant", { as: ann, body: { name: "x", tenant: "globex" } });
  expect(response.status).toBe(403);
  expect(await (await app.fetch("/files", { as: gil })).json()).toEqual({ names: ["g"], owned: 1 });
});

test("only systemAdmin crosses tenants, with a reason that is logged", async () => {
  expect((await app.fetch("/all", { as: ann })).status).toBe(403);
  expect(await (await app.fetch("/all", { as: root })).json()).toMatchObject({
    names: expect.arrayContaining(["a", "g"]),
  });
  expect(logged("tenant.crossed")).toEqual([
    expect.objectContaining({
      level: "warn",
      reason: "support",
      tenantId: "ops",
      userId: "root",
      handler: "box.file.all",
    }),
  ]);
  const ctx = await app.ctx(root);
  for (const reason of ["", " ", undefined])
    expect(() => ctx.acrossTenants(reason as string)).toThrow("give the purpose of the access");
  await expect(
    ctx.commit([{ Delete: { TableName: "keelson-files", Key: { pk: "acme/files", sk: "a" } } }], 1),
  ).rejects.toThrow("tenant.wall");
});

test("a job is limited to its tenant; one without tenant reads no tenant rows, and crosses only if the system enqueued it", async () => {
  const made = async (as: typeof ann | "system" | undefined, name: string) => {
    const before = [logged("report.made").length, logged("tenant.wall").length];
    if (as === "system") {
      await server.run({ reason: "a report" }, (ctx) =>
        ctx.enqueue("box.report.make" as never, { name } as never),
      );
    } else await app.fetch("/reports", { ...(as && { as }), body: { name } });
    await app.settled().catch(() => undefined);
    return [
      logged("report.made")
        .slice(before[0])
        .map((record) => record["count"]),
      logged("tenant.wall").length > (before[1] ?? 0),
    ];
  };
  expect(await made(ann, "acme")).toEqual([[3], false]);
  expect(await made(ann, "globex")).toEqual([[], true]);
  expect(await made(undefined, "globex")).toEqual([[], true]);
  expect(await made("system", "globex")).toEqual([[], true]);
  expect(await made(undefined, "all")).toEqual([[], false]);
  expect(await made("system", "all")).toEqual([[4], false]);
  expect(await made(ann, "all")).toEqual([[], false]);
});
