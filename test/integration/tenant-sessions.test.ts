import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import {
  BatchGetCommand,
  BatchWriteCommand,
  GetCommand,
  paginateQuery,
  ScanCommand,
  TransactGetCommand,
} from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, type QueryContext } from "keelson";
import { type HttpApiEvent, lambdaHttp } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { accessKeyOf, type StubSts, stubSts } from "../support/stub-sts.ts";

const Named = z.object({ name: z.string(), tenant: z.string().optional() });

const box = defineFeature("box", (r) => {
  const files = r.table("files", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const counts = r.table("counts", { partitionKey: "id", tenant: false });

  r.write("file.create", {
    route: "POST /files",
    access: access.authenticated,
    input: Named,
    handler: async (ctx, { name }) => {
      const Item = { ...(await files.key(ctx, "files", name)), name };
      const Key = { id: "files" };
      const count = { UpdateExpression: "ADD n :one", ExpressionAttributeValues: { ":one": 1 } };
      return ctx.commit(
        [
          { Put: { TableName: files.name, Item } },
          { Update: { TableName: counts.name, Key, ...count } },
        ],
        {
          name,
        },
      );
    },
  });
  r.write("count.reset", {
    route: "POST /counts",
    access: access.authenticated,
    handler: (ctx) =>
      ctx.commit([{ Delete: { TableName: counts.name, Key: { id: "files" } } }], { done: true }),
  });
  const read = (
    name: string,
    route: `GET /${string}`,
    rule: typeof access.authenticated,
    work: (ctx: QueryContext) => Promise<unknown>,
  ) => r.query(name, { route, access: rule, handler: async (ctx) => ({ found: await work(ctx) }) });
  read("file.list", "GET /files", access.authenticated, async (ctx) => {
    const { pk } = await files.key(ctx, "files");
    const names: unknown[] = [];
    const input = {
      TableName: files.name,
      KeyConditionExpression: "pk = :pk",
      ExpressionAttributeValues: { ":pk": pk },
    };
    for await (const { Items = [] } of paginateQuery({ client: ctx.db, pageSize: 1 }, input))
      names.push(...Items.map((item) => item["name"]));
    return names;
  });
  read(
    "count.show",
    "GET /counts",
    access.authenticated,
    async (ctx) =>
      (await ctx.db.send(new GetCommand({ TableName: counts.name, Key: { id: "files" } }))).Item?.[
        "n"
      ],
  );
  read("both.read", "GET /both", access.authenticated, async (ctx) => {
    const Key = await files.key(ctx, "files", "a");
    const items = [
      { Get: { TableName: files.name, Key } },
      { Get: { TableName: counts.name, Key: { id: "files" } } },
    ];
    return (await ctx.db.send(new TransactGetCommand({ TransactItems: items }))).Responses?.length;
  });
  read("both.get", "GET /mixed", access.authenticated, async (ctx) => {
    const Keys = [await files.key(ctx, "files", "a")];
    const own = await ctx.db.send(
      new BatchGetCommand({ RequestItems: { [files.name]: { Keys } } }),
    );
    await ctx.db.send(
      new BatchWriteCommand({
        RequestItems: { [counts.name]: [{ DeleteRequest: { Key: { id: "x" } } }] },
      }),
    );
    const mixed = { [files.name]: { Keys }, [counts.name]: { Keys: [{ id: "files" }] } };
    const error = await ctx.db
      .send(new BatchGetCommand({ RequestItems: mixed }))
      .catch(({ message }: Error) => message);
    return [own.Responses?.[files.name]?.length, error];
  });
  read("file.all", "GET /all", access.systemAdmin, async (ctx) => {
    const db = ctx.acrossTenants("support");
    const { Items = [] } = await db.send(new ScanCommand({ TableName: files.name }));
    await db.send(new ScanCommand({ TableName: counts.name }));
    return Items.length;
  });
});

const server = () => buildServer({ features: [box], isolation: {} });
const role = "arn:aws:iam::123456789012:role/tenants";

let app: TestApp;
let sts: StubSts;
let proxy: Awaited<ReturnType<typeof recordSigners>>;
let invoke: (
  method: string,
  path: string,
  body?: object,
  who?: string,
) => Promise<{ status: number | undefined; body: unknown; headers: unknown }>;

beforeAll(async () => {
  app = await startTestApp(server());
  sts = await stubSts();
  proxy = await recordSigners(app.env["AWS_ENDPOINT_URL"] ?? "");
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.stubEnv("AWS_ENDPOINT_URL_DYNAMODB", proxy.endpoint);
  vi.stubEnv("AWS_ENDPOINT_URL_STS", sts.endpoint);
  vi.stubEnv("KEELSON_ISOLATION_ROLE", role);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const handler = lambdaHttp(server());
  const tokens: Record<string, string> = {
    ann: await app.token({ id: "ann", tenantId: "acme" }),
    gil: await app.token({ id: "gil", tenantId: "a/b" }),
    root: await app.token({ id: "root", tenantId: "ops", roles: ["systemAdmin"] }),
  };
  invoke = async (method, path, body, who = "ann") => {
    const event = {
      version: "2.0",
      rawPath: path,
      rawQueryString: "",
      headers: {
        authorization: `Bearer ${tokens[who]}`,
        "content-type": "application/json",
        ...(method === "POST" ? { "idempotency-key": `"${crypto.randomUUID()}"` } : {}),
      },
      requestContext: { http: { method, path, sourceIp: "127.0.0.1" } },
      isBase64Encoded: false,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    } as unknown as HttpApiEvent; // the part that is read
    const answer = await handler(event, { awsRequestId: crypto.randomUUID() } as Parameters<
      typeof handler
    >[1]);
    return {
      status: answer.statusCode,
      headers: answer.headers,
      body: JSON.parse(answer.body ?? ""),
    };
  };
});
afterAll(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  proxy.close();
  sts.close();
  await app.close();
});
beforeEach(() => {
  proxy.calls.length = 0;
  sts.answer();
});

const [own, acme, ab] = ["embedded", accessKeyOf("tenant", "acme"), accessKeyOf("tenant", "a=2fb")];

test("a tenant's commit is signed with its session, other tables included; its claim is taken as the process", async () => {
  expect(await invoke("POST", "/files", { name: "a" })).toMatchObject({ status: 200 });
  expect(proxy.calls).toEqual([
    `PutItem once as ${own}`,
    `TransactWriteItems files counts once as ${acme}`,
  ]);
  proxy.calls.length = 0;
  expect(await invoke("POST", "/files", { name: "g" }, "gil")).toMatchObject({ status: 200 });
  expect(proxy.calls.at(-1)).toBe(`TransactWriteItems files counts once as ${ab}`);
  expect(sts.asked.map((asked) => asked["Tags.member.1.Value"])).toEqual(["acme", "a=2fb"]);
});

test("commands on a tenant's rows are signed with its session, page by page, and those on other tables as the process", async () => {
  expect(await invoke("GET", "/files")).toMatchObject({ body: { found: ["a"] } });
  expect(await invoke("GET", "/counts")).toMatchObject({ body: { found: 2 } });
  expect(await invoke("GET", "/both")).toMatchObject({ body: { found: 2 } });
  expect(proxy.calls.filter((call) => !call.includes(" config "))).toEqual([
    `Query files as ${acme}`,
    `Query files as ${acme}`,
    `GetItem counts as ${own}`,
    `TransactGetItems files counts as ${acme}`,
  ]);
});

test("a commit without rows of the tenant is signed as the process", async () => {
  await invoke("POST", "/counts", {});
  expect(proxy.calls.at(-1)).toBe(`TransactWriteItems counts once as ${own}`);
});

test("a batch may hold tenant tables or other tables, and a mix of both is not sent", async () => {
  expect(await invoke("GET", "/mixed")).toMatchObject({
    body: {
      found: [
        1,
        "BatchGetItem has tables with tenants and others, which need different credentials here; send two commands",
      ],
    },
  });
  expect(
    proxy.calls.filter((call) => call.startsWith("Batch") && !call.includes(" config ")),
  ).toEqual([`BatchGetItem files as ${acme}`, `BatchWriteItem counts as ${own}`]);
});

test("ctx.acrossTenants has its own session for rows of every tenant", async () => {
  expect(await invoke("GET", "/all", undefined, "root")).toMatchObject({ body: { found: 2 } });
  expect(proxy.calls.filter((call) => call.startsWith("Scan"))).toEqual([
    `Scan files as ${accessKeyOf("across", "true")}`,
    `Scan counts as ${own}`,
  ]);
});

test("a role that cannot be assumed makes the request a retryable 503, sends nothing, and releases the claim", async () => {
  sts.answer(500, "<ErrorResponse><Error><Code>InternalFailure</Code></Error></ErrorResponse>");
  const failed = await invoke("GET", "/files", undefined, "root");
  expect(failed).toMatchObject({
    status: 503,
    headers: { "retry-after": "1" },
    body: { error: "isolation_unavailable" },
  });
  const write = await invoke("POST", "/files", { name: "late" }, "root");
  expect(write).toMatchObject({ status: 503, body: { error: "isolation_unavailable" } });
  expect(proxy.calls.filter((call) => call.includes("files"))).toEqual([]);
  expect(proxy.calls.at(-1)).toBe(`DeleteItem once as ${own}`); // the claim is released
});

test("without the variable, no tenant session is requested outside of production", async () => {
  const asked = sts.asked.length;
  expect((await app.fetch("/files", { as: { id: "ann", tenantId: "acme" } })).status).toBe(200);
  expect(sts.asked).toHaveLength(asked);
});

test("a server without tenant tables requests no sessions, whatever its options", async () => {
  const handler = lambdaHttp(
    buildServer({
      features: [
        defineFeature("plain", (r) => {
          r.query("plain.show", {
            route: "GET /plain",
            access: access.everyone,
            handler: async () => ({ done: true }),
          });
        }),
      ],
      isolation: {},
      environment: "production",
      auth: { secret: "x".repeat(32), audience: "plain" },
    }),
  );
  vi.stubEnv("KEELSON_ISOLATION_ROLE", "");
  const event = {
    version: "2.0",
    rawPath: "/plain",
    rawQueryString: "",
    headers: {},
    requestContext: { http: { method: "GET", path: "/plain" } },
  };
  const answer = await handler(
    event as unknown as HttpApiEvent,
    { awsRequestId: "r" } as Parameters<typeof handler>[1],
  );
  expect(answer.statusCode).toBe(200);
  vi.stubEnv("KEELSON_ISOLATION_ROLE", role);
});

/** A proxy in front of DynamoDB that keeps who has signed each call. */
async function recordSigners(endpoint: string) {
  const target = new URL(endpoint);
  const calls: string[] = [];
  const proxied = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const operation = String(incoming.headers["x-amz-target"]).split(".")[1];
    const tables = [
      ...body.toString().matchAll(/"(?:TableName":"|RequestItems":\{")[a-z0-9]+-([a-z]+)"/g),
    ].map(([, name]) => name);
    const who = /Credential=([^/]+)/.exec(String(incoming.headers.authorization))?.[1];
    calls.push([operation, ...tables, "as", who].join(" "));
    const { hostname: host, port } = target;
    const forwarded = send(
      { host, port, method: "POST", path: "/", headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    forwarded.end(body);
  });
  await new Promise<void>((resolve) => proxied.listen(0, "127.0.0.1", resolve));
  const { port } = proxied.address() as AddressInfo; // safe: it listens on a port
  return {
    endpoint: `http://127.0.0.1:${port}`,
    calls,
    close: () => {
      proxied.closeAllConnections();
      proxied.close();
    },
  };
}
