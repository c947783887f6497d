import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { decodeJwt } from "jose";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import {
  type LambdaHttpEvent,
  lambdaHttp,
  lambdaOutbox,
  lambdaQueue,
} from "../../hosts/lambda/index.ts";
import { testToken } from "./app/caller.ts";
import { startTestApp } from "./app/test-app.ts";
import { lambdaContext, lambdaEvent } from "./lambda-event.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "echo.heard": { name: string };
  }
  interface Jobs {
    "echoes.echo.work": { name: string };
  }
}

let heard: string[] = [];
const echoes = defineFeature("echoes", (r) => {
  const table = r.table("echoes", { partitionKey: "pk", tenant: false });
  r.query("echo.show", {
    route: "GET /echo/:id",
    access: access.everyone,
    handler: async ({ request, user }, input) => ({
      ...request,
      rawBody: undefined,
      input,
      user: user.id,
    }),
  });
  r.write("echo.send", {
    route: "POST /echo",
    access: access.everyone,
    body: "bytes",
    handler: async ({ request }) => ({
      body: Buffer.from(request?.rawBody ?? []).toString(),
      type: request?.headers["content-type"],
    }),
  });
  r.event("echo.heard", z.object({ name: z.string() }));
  r.on("echo.heard", {
    name: "hear",
    handler: async (_ctx, { payload }) => void heard.push(`event ${payload.name}`),
  });
  r.job("echo.work", {
    input: z.object({ name: z.string() }),
    handler: async (ctx, { name }) => {
      await ctx.db.send(new PutCommand({ TableName: table.name, Item: { pk: name } }));
      heard.push(`job ${name}`);
    },
  });
  r.write("echo.publish", {
    input: z.object({ name: z.string() }),
    handler: async (ctx, { name }) => {
      await ctx.publish("echo.heard", { name });
      await ctx.enqueue("echoes.echo.work", { name });
    },
  });
});
const secret = "a secret of at least thirty-two bytes";
const build = () =>
  buildServer({ features: [echoes], auth: { secret, issuer: "us" }, environment: "test" });

beforeEach(() => {
  heard = [];
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  vi.stubEnv("AWS_REGION", "us-east-1");
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const triggers = [
  "restApi",
  "httpApi",
  "httpApiV1",
  "functionUrl",
  "loadBalancer",
  "loadBalancerMultiValue",
] as const;
const ask = async (event: LambdaHttpEvent, server = build()) => {
  const { statusCode, body } = (await lambdaHttp<LambdaHttpEvent>(server)(
    event,
    lambdaContext(),
  )) as {
    statusCode: number;
    body?: string;
  }; // what all results have in common
  return { statusCode, body: JSON.parse(body ?? "") };
};

test.each(triggers)(
  "%s: passes on path, query, headers, cookies and address as the client sent them",
  async (trigger) => {
    const event = lambdaEvent(trigger, {
      path: "/echo/a%20b?q=1%262&%C3%BC=x",
      headers: { "X-Custom": "1", "x-forwarded-for": "198.51.100.1" },
      cookies: ["a=1", "b=2"],
      ip: "192.0.2.7",
    });
    expect(await ask(event)).toMatchObject({
      statusCode: 200,
      body: {
        method: "GET",
        path: "/echo/a%20b",
        input: { id: "a b", q: "1&2", ü: "x" },
        headers: { "x-custom": "1" },
        cookies: { a: "1", b: "2" },
        ip: "192.0.2.7",
      },
    });
  },
);

test.each(triggers)("%s: a request needs only a path", async (trigger) => {
  expect(await ask(lambdaEvent(trigger, { path: "/echo/1" }))).toMatchObject({
    statusCode: 200,
    body: { input: { id: "1" } },
  });
  expect(await ask(lambdaEvent(trigger, { path: "/%zz" }))).toMatchObject({
    statusCode: expect.any(Number),
  });
});

test.each(triggers)("%s: a body is JSON, text or bytes, and implies POST", async (trigger) => {
  const sent = (of: { body: unknown; headers?: Record<string, string> }) =>
    ask(lambdaEvent(trigger, { path: "/echo", ...of }));
  expect(await sent({ body: { a: 1 } })).toEqual({
    statusCode: 200,
    body: { body: '{"a":1}', type: "application/json" },
  });
  expect(await sent({ body: "text" })).toMatchObject({ body: { body: "text" } });
  expect(await sent({ body: Buffer.from("bytes") })).toMatchObject({ body: { body: "bytes" } });
  const typed = { body: { a: 1 }, headers: { "Content-Type": "application/vnd.a+json" } };
  expect(await sent(typed)).toMatchObject({ body: { type: "application/vnd.a+json" } });
});

test.each(["restApi", "httpApi", "httpApiV1"] as const)(
  "%s: claims identify the caller, and the stage is not part of the path",
  async (trigger) => {
    const claims = { sub: "ann", tenantId: "acme" };
    const event = lambdaEvent(trigger, { path: "/echo/1", stage: "dev", claims });
    expect(await ask(event)).toMatchObject({
      statusCode: 200,
      body: { path: "/echo/1", user: "ann" },
    });
  },
);

test.each(triggers)(
  "%s: a parameter or header may have the name of an object's member",
  async (trigger) => {
    const event = lambdaEvent(trigger, {
      path: "/echo/1?constructor=1&__proto__=2",
      headers: Object.fromEntries([
        ["toString", "3"],
        ["__proto__", "4"],
      ]),
    });
    const { body } = await ask(event);

    expect(Object.entries(body.input)).toEqual(
      expect.arrayContaining([
        ["constructor", "1"],
        ["__proto__", "2"],
      ]),
    );
    expect(Object.entries(body.headers)).toEqual(
      expect.arrayContaining([
        ["tostring", "3"],
        ["__proto__", "4"],
      ]),
    );
  },
);

test("a repeated parameter is a list, except for a load balancer without multi-value headers", async () => {
  const lists = await Promise.all(
    triggers.map(
      async (trigger) =>
        (await ask(lambdaEvent(trigger, { path: "/echo/1?t=a&t=b&&c" }))).body.input,
    ),
  );
  expect(lists.map(({ t }) => t)).toEqual([
    ["a", "b"],
    ["a", "b"],
    ["a", "b"],
    ["a", "b"],
    "b",
    ["a", "b"],
  ]);
});

test("a test app's events and jobs work with the queue handler, and its rows with the stream handler", async () => {
  const app = await startTestApp(build());
  try {
    for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
    await app.call("echoes.echo.publish", { name: "one" });
    const queue = lambdaQueue(build());
    const none = { batchItemFailures: [] };
    expect(await queue(lambdaEvent("sqs", { messages: app.events }), lambdaContext())).toEqual(
      none,
    );
    expect(await queue(lambdaEvent("sqs", { messages: app.jobs }), lambdaContext())).toEqual(none);
    expect(heard).toEqual(["event one", "job one"]);

    const [job] = app.jobs;
    const other = { queue: "my-jobs.fifo", messages: [JSON.stringify(job)] };
    const [record] = lambdaEvent("sqs", other).Records;
    expect(record).toMatchObject({
      body: JSON.stringify(job),
      attributes: { MessageGroupId: "test" },
    });
    expect(record?.eventSourceARN).toMatch(/:my-jobs\.fifo$/);
    expect(lambdaEvent("sqs", { messages: [] })).toEqual({ Records: [] });

    const rows = [{ pk: "shard#1", sk: "000000000000001#a" }];
    expect(
      await lambdaOutbox(build())(lambdaEvent("dynamoDbStream", { rows }), lambdaContext()),
    ).toEqual(none);
    expect(
      lambdaEvent("dynamoDbStream", { rows, table: "t" }).Records[0]?.eventSourceARN,
    ).toContain(":table/t/stream/");
    expect(lambdaEvent("schedule", {})).toMatchObject({
      "detail-type": "Scheduled Event",
      source: "aws.events",
      detail: {},
    });
  } finally {
    await app.close();
  }
});

test("a context's remaining time decreases to zero", () => {
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const context = lambdaContext({ timeoutMs: 1_000, awsRequestId: "r1", functionName: "echo" });
  const lefts = [0, 400, 2_000].map((ms) => {
    now.mockReturnValue(ms);
    return context.getRemainingTimeInMillis();
  });
  expect(lefts).toEqual([1_000, 600, 0]);
  expect(context).toMatchObject({
    awsRequestId: "r1",
    functionName: "echo",
    invokedFunctionArn: expect.stringMatching(/:echo$/),
  });
  expect([context.done(), context.fail(""), context.succeed("")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(lambdaContext().awsRequestId).not.toBe(lambdaContext().awsRequestId);
});

test("the server accepts a test token", async () => {
  const ann = { id: "ann", tenantId: "acme" };
  const asked = async (token: string, server?: ReturnType<typeof build>) =>
    (
      await ask(
        lambdaEvent("httpApi", { path: "/echo/1", headers: { authorization: `Bearer ${token}` } }),
        server,
      )
    ).body.user;
  expect(await asked(await testToken(build(), ann))).toBe("ann");
  const short = await testToken(build(), ann, { expiresInSeconds: 600 });
  const { iat = 0, exp } = decodeJwt(short);
  expect([await asked(short), exp]).toEqual(["ann", iat + 600]);

  const bare = () => buildServer({ features: [echoes], environment: "test" });
  await expect(testToken(bare(), ann)).rejects.toThrow(
    "testToken: the server has no `auth.secret`; set KEELSON_AUTH_SECRET",
  );
  vi.stubEnv("KEELSON_AUTH_SECRET", secret);
  expect(await asked(await testToken(bare(), ann), bare())).toBe("ann");
  const secrets = ["the first of two secrets, and the one that signs", secret];
  const rotating = buildServer({
    features: [echoes],
    auth: { secret: secrets },
    environment: "test",
  });
  expect(await asked(await testToken(rotating, ann), rotating)).toBe("ann");
  const remote = buildServer({
    features: [echoes],
    auth: { jwks: "https://a.example/keys" },
    environment: "test",
  });
  await expect(testToken(remote, ann)).rejects.toThrow(
    "testToken: only its issuer signs for `auth.jwks`",
  );
});
