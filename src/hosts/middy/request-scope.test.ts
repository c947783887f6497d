import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import httpHeaderNormalizer from "@middy/http-header-normalizer";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { timeIsOver } from "../../../test/support/time-is-over.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server } from "../../app/server/server.ts";
import { ConflictError, PipelineError, ValidationError } from "../../base/errors/errors.ts";
import { type AccessRule, access } from "../../base/identity/access.ts";
import { signToken } from "../../base/identity/token.ts";
import { currentContext } from "../../base/request/ambient.ts";
import type { EmbeddedStack } from "../../embedded/stack/index.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { type AdoptedContext, requestScope, type WriteOnceOptions, writeOnce } from "./middy.ts";

const secret = "a secret that is long enough for these tests";
const feature = defineFeature("legacy", (r) => {
  const config = r.config({ keys: { limit: createTenantConfig("number", { default: 7 }) } });
  const table = r.table("orders", { partitionKey: "pk", tenant: false });
  r.query("order.show", { handler: async () => 1 });
  return { config, table };
});
const serverOf = () => buildServer({ features: [feature], auth: { secret } });

let stack: EmbeddedStack;
let logs: Record<string, unknown>[] = [];
beforeAll(async () => {
  const app = await startTestApp(serverOf()); // makes the tables
  stack = { endpoint: "", env: app.env, close: app.close };
});
afterAll(() => stack.close());
beforeEach(() => {
  logs = [];
  for (const [name, value] of Object.entries(stack.env)) vi.stubEnv(name, value);
  vi.stubEnv("LOG_LEVEL", "debug");
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    logs.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const event = ({
  method = "POST",
  headers = {},
  body = "{}",
}: {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
} = {}) => ({
  version: "2.0",
  rawPath: "/orders",
  rawQueryString: "",
  headers: { "Content-Type": "application/json", ...headers },
  requestContext: { http: { method, sourceIp: "127.0.0.1" }, stage: "$default" },
  body,
  isBase64Encoded: false,
});
type Result = { statusCode: number; headers: Record<string, string>; body: string };
type Handler = (event: unknown, context: AdoptedContext) => unknown;

/** An adopted function with middlewares of Middy's own around the handler. */
function adopted(
  existing: Handler,
  {
    use = [] as middy.MiddlewareObj[],
    server = serverOf(),
    ...options
  }: { use?: middy.MiddlewareObj[]; server?: Server; access?: typeof access.admin } = {},
) {
  const mode = requestScope(server, {
    handler: "legacy.order.create",
    access: access.everyone,
    ...options,
  });
  const chain = middy({ executionMode: mode }).use([
    httpHeaderNormalizer(),
    httpJsonBodyParser(),
    ...use,
  ] as middy.MiddlewareObj[]);
  const handler = chain.handler(existing as never);
  return async (given: object, context: object = {}) =>
    (await handler(given as never, context as never)) as unknown as Result;
}
const tokenOf = (userId: string, roles: string[] = []) =>
  signToken({ secret, tenantId: "acme", userId, roles }, { now: () => Date.now() });

test("an event of another source is no request, so it may cross tenants; an anonymous request may not", async () => {
  const crossing = async (_event: unknown, { keelson }: AdoptedContext) => {
    keelson.acrossTenants("import of a file");
    return { statusCode: 204 };
  };
  // Without the middlewares that take nothing but HTTP.
  const mode = requestScope(serverOf(), { handler: "legacy.file.import", access: access.everyone });
  const other = middy({ executionMode: mode }).handler(crossing as never);
  expect(await other({ Records: [{ eventSource: "aws:s3" }] } as never, {} as never)).toEqual({
    statusCode: 204,
  });
  const cross = adopted(crossing as Handler);
  expect((await cross(event())).statusCode).toBe(403);
  expect(logs.filter(({ msg }) => msg === "tenant.crossed")).toEqual([
    expect.objectContaining({ reason: "import of a file" }),
  ]);
});

test("joins the invocation's trace for a signed-in caller and for other events, but not for a stranger", async () => {
  const root = "5759e988bd862e3fe1be46a994272793";
  vi.stubEnv(
    "_X_AMZN_TRACE_ID",
    "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
  );
  const show = async (_event: unknown, { keelson: ctx }: AdoptedContext) => {
    ctx.log.info("legacy.traced");
    return { statusCode: 200, body: ctx.trace.traceId };
  };
  const signedIn = event({
    headers: { Authorization: `Bearer ${await tokenOf("ann", ["admin"])}` },
  });
  expect((await adopted(show as Handler, { access: access.admin })(signedIn)).body).toBe(root);
  const stranger = await adopted(show as Handler)(event());
  expect(stranger.body).not.toBe(root);
  const mode = requestScope(serverOf(), { handler: "legacy.file.import", access: access.everyone });
  const other = middy({ executionMode: mode }).handler(show as never);
  expect(await other({ Records: [{ eventSource: "aws:s3" }] } as never, {} as never)).toMatchObject(
    { body: root },
  );
  const traces = logs.filter(({ msg }) => msg === "legacy.traced").map(({ trace_id }) => trace_id);
  expect(traces).toEqual([root, stranger.body, root]);
});

test("gives an existing handler a ctx, with the request's ID, caller, configuration and ambient context", async () => {
  const call = adopted(async (given, { keelson: ctx }) => {
    ctx.log.info("legacy.ran");
    const { limit } = feature.config;
    return {
      statusCode: 201,
      headers: { "X-Own": "1" },
      body: JSON.stringify({
        parsed: (given as { body: unknown }).body,
        user: ctx.user.id,
        limit: await ctx.config(limit),
        ambient: currentContext()?.userId,
        path: ctx.request?.path,
      }),
    };
  });
  const result = await call(
    event({
      headers: { Authorization: `Bearer ${await tokenOf("ann")}`, "X-Request-ID": "r1" },
      body: '{"a":1}',
    }),
  );
  expect(result).toMatchObject({
    statusCode: 201,
    headers: { "x-request-id": "r1", "x-own": "1" },
  });
  expect(JSON.parse(result.body)).toEqual({
    parsed: { a: 1 },
    user: "ann",
    limit: 7,
    ambient: "ann",
    path: "/orders",
  });
  expect(logs).toContainEqual(
    expect.objectContaining({
      msg: "legacy.ran",
      handler: "legacy.order.create",
      requestId: "r1",
      tenantId: "acme",
      userId: "ann",
    }),
  );
});

test("turns errors of the handler and of Middy's own middlewares into the uniform response", async () => {
  const thrown = await adopted(async () => {
    throw new ConflictError("order_locked");
  })(event());
  expect(thrown.statusCode).toBe(409);
  expect(JSON.parse(thrown.body)).toMatchObject({
    error: "order_locked",
    requestId: thrown.headers["x-request-id"],
  });
  const broken = await adopted(async () => ({ statusCode: 200 }))(event({ body: "{" }));
  expect(broken.headers["x-request-id"]).toEqual(expect.any(String));
  expect(broken.statusCode).toBe(422);
  expect(JSON.parse(broken.body)).toMatchObject({ error: "pipeline_error" });
  const odd = await adopted(async () =>
    Promise.reject(Object.assign(new Error("s3cret"), { statusCode: 503 })),
  )(event());
  expect([odd.statusCode, odd.body.includes("s3cret")]).toEqual([500, false]);
});

test("adds the request ID to early responses and to those of Middy's error handler", async () => {
  const early = { before: async () => ({ statusCode: 304, headers: {} }) };
  expect(await adopted(async () => 1, { use: [early] })(event())).toMatchObject({
    statusCode: 304,
    headers: { "x-request-id": expect.any(String) },
  });
  const own = await adopted(
    async () => {
      throw Object.assign(new Error("teapot"), { statusCode: 418, expose: true });
    },
    { use: [httpErrorHandler({ logger: false }) as middy.MiddlewareObj] },
  )(event());
  expect(own).toMatchObject({ statusCode: 418, headers: { "x-request-id": expect.any(String) } });
});

describe("an error that a middleware turns into a response", () => {
  const middys = httpErrorHandler({
    logger: false,
    fallbackMessage: "Sorry",
  }) as middy.MiddlewareObj;
  const failedLines = () => logs.filter(({ msg }) => msg === "request.failed");

  test.each<[string, () => unknown, [number, string, string], object]>([
    [
      "a typed error",
      () =>
        new ConflictError("order_locked", {
          message: "Ann edits it",
          headers: { "retry-after": "7" },
        }),
      [409, "Ann edits it", "7"],
      { level: "warn", error: "order_locked", status: 409, message: "Ann edits it" },
    ],
    [
      "one of the server",
      () =>
        new PipelineError("The archive is being rebuilt", 503, { headers: { "retry-after": "7" } }),
      [503, "The archive is being rebuilt", "7"],
      { level: "error", error: "pipeline_error", status: 503 },
    ],
    [
      "invalid input",
      () => new ValidationError([{ field: "a", error: "b" }]),
      [422, "Validation failed", ""],
      { level: "warn" },
    ],
    [
      "one of Middy's",
      () => Object.assign(new Error("teapot"), { statusCode: 418 }),
      [418, "teapot", ""],
      { level: "warn", status: 418 },
    ],
    [
      "any other",
      () => new Error("s3cret"),
      [500, "Sorry", ""],
      {
        level: "error",
        error: "internal_error",
        status: 500,
        message: "s3cret",
        stack: expect.any(String),
      },
    ],
    [
      "what is no error",
      () => "s3cret",
      [500, "Sorry", ""],
      { level: "error", message: "thrown string: s3cret" },
    ],
  ])("is logged when Middy answers it: %s", async (_, make, [status, body, retryAfter], line) => {
    const fails = async () => Promise.reject(make());
    const chains: [Handler, middy.MiddlewareObj[]][] = [
      [fails, [middys]],
      [fails, [middys, writeOnce() as middy.MiddlewareObj]],
      [async () => 1, [middys, { before: fails }]],
      [async () => ({ statusCode: 200 }), [middys, { after: fails }]],
    ];
    for (const [existing, use] of chains) {
      logs = [];
      const headers = {
        authorization: `Bearer ${await tokenOf("failing")}`,
        "idempotency-key": crypto.randomUUID(),
      };
      const given = await adopted(existing, { use })(event({ headers }));

      expect([given.statusCode, given.body, given.headers["retry-after"] ?? ""]).toEqual([
        status,
        body,
        retryAfter,
      ]);
      expect(failedLines()).toEqual([
        expect.objectContaining({ handler: "legacy.order.create", ...line }),
      ]);
    }
  });

  test.each<[string, unknown, object]>([
    [
      "says that it is the client's",
      { statusCode: 404 },
      { level: "warn", status: 404, error: "internal_error" },
    ],
    ["says its status as text", { statusCode: "404" }, { level: "warn", status: 404 }],
    ["recovers", { statusCode: 200, body: "of yesterday" }, { level: "warn", status: 200 }],
    ["says no status", "of yesterday", { level: "error", status: 500 }],
    ["says that it has none", { statusCode: null }, { level: "error", status: 500 }],
  ])("is logged with the response's status when a middleware %s", async (_, answered, line) => {
    const onError = () => answered as never;
    await adopted(async () => Promise.reject(new Error("gone")), { use: [{ onError }] })(event());

    expect(failedLines()).toEqual([expect.objectContaining({ ...line, message: "gone" })]);
  });

  test("is logged for an event that is not HTTP", async () => {
    const mode = requestScope(serverOf(), {
      handler: "legacy.queue.drain",
      access: access.everyone,
    });
    const handler = middy({ executionMode: mode })
      .onError(() => ({ batchItemFailures: [] }) as never)
      .handler((async () => Promise.reject(new ConflictError("poison"))) as never);
    expect(await handler({ Records: [] } as never, {} as never)).toEqual({ batchItemFailures: [] });

    expect(failedLines()).toEqual([
      expect.objectContaining({ level: "warn", error: "poison", handler: "legacy.queue.drain" }),
    ]);
  });

  test("is logged once, with the uniform response, when no middleware returns one", async () => {
    const names: unknown[] = [];
    const mode = requestScope(serverOf(), {
      handler: "legacy.order.create",
      access: access.everyone,
    });
    const chain = middy({
      executionMode: mode,
      beforeMiddleware: (name: string) => void names.push(name),
    });
    const handler = chain
      .onError(function first() {})
      .onError(function second() {})
      .handler((async () => Promise.reject(new ConflictError("order_locked"))) as never);
    expect(await handler(event() as never, {} as never)).toMatchObject({ statusCode: 409 });

    expect([failedLines(), names]).toEqual([
      [expect.objectContaining({ error: "order_locked" })],
      ["second", "first"],
    ]);
  });

  test("is not logged again when the timeout was answered before", async () => {
    let fails = () => {};
    const existing = () =>
      new Promise((_, reject) => {
        fails = () => reject(new Error("too late"));
        timeIsOver();
      });
    const answered = adopted(existing, { use: [middys] })(event(), {
      getRemainingTimeInMillis: () => 30_000,
    });
    expect((await answered).statusCode).toBe(504);
    fails();

    await waitFor(() =>
      expect(logs).toContainEqual(
        expect.objectContaining({ msg: "handler.failed_late", level: "debug" }),
      ),
    );
    expect(failedLines()).toEqual([expect.objectContaining({ error: "timeout" })]);
  });
});

test("enforces an access rule before anything runs; without one, an invalid token leaves the caller unknown", async () => {
  let ran = 0;
  const call = adopted(
    async (_event, { keelson }) => ({ statusCode: 200, body: String(keelson.user.id), ran: ++ran }),
    {
      access: access.admin,
    },
  );
  expect((await call(event())).statusCode).toBe(401);
  expect(
    (await call(event({ headers: { authorization: `Bearer ${await tokenOf("ann")}` } })))
      .statusCode,
  ).toBe(403);
  expect(ran).toBe(0);
  expect(
    (await call(event({ headers: { authorization: `Bearer ${await tokenOf("ann", ["admin"])}` } })))
      .body,
  ).toBe("ann");
  const open = adopted(async (_event, { keelson }) => ({
    statusCode: 200,
    body: String(keelson.user.id),
  }));
  expect((await open(event({ headers: { authorization: "Bearer forged" } }))).body).toBe(
    "undefined",
  );
});

test("with the server's cors, answers the preflight of an allowed origin before the access rule", async () => {
  const origin = "https://app.example.com";
  const call = adopted(async () => ({ statusCode: 200, body: "ran" }), {
    access: access.authenticated,
    server: buildServer({ features: [feature], auth: { secret }, cors: { origins: [origin] } }),
  });
  const ask = (method: string, from = origin) =>
    call(event({ method, headers: { origin: from, "access-control-request-method": "PUT" } }));
  expect(await ask("OPTIONS")).toMatchObject({
    statusCode: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      "access-control-max-age": "600",
    },
  });
  expect((await ask("OPTIONS", "https://other.example.com")).statusCode).toBe(401);
  expect((await ask("PUT")).statusCode).toBe(401);
  const without = adopted(async () => ({ statusCode: 200 }), { access: access.authenticated });
  expect((await without(event({ method: "OPTIONS" }))).statusCode).toBe(401);
});

const socket = {
  requestContext: { connectionId: "c1", routeKey: "send", eventType: "MESSAGE" },
  body: "{}",
};
const requests: [string, unknown][] = [
  ["of a WebSocket API", socket],
  [
    "of VPC Lattice",
    {
      version: "2.0",
      path: "/orders",
      method: "GET",
      headers: {},
      requestContext: { serviceNetworkArn: "arn" },
    },
  ],
  ["of VPC Lattice", { raw_path: "/orders", method: "GET", headers: {}, body: "" }],
  [
    "of AppSync",
    { arguments: {}, identity: null, request: { headers: {} }, info: { fieldName: "orders" } },
  ],
  ["of AppSync", { info: { channel: { path: "/orders" }, operation: "PUBLISH" }, events: [] }],
  [
    "of CloudFront",
    { Records: [{ cf: { request: { uri: "/orders", method: "GET", headers: {} } } }] },
  ],
  [
    "API Gateway asks a Lambda authorizer with",
    { type: "TOKEN", methodArn: "arn", authorizationToken: "t" },
  ],
  ["AppSync asks a Lambda authorizer with", { authorizationToken: "t", requestContext: {} }],
];
/** A function with nothing but its mode, so that no middleware asks for HTTP. */
function bare(existing: (event: unknown, context: AdoptedContext) => unknown, rule?: AccessRule) {
  const mode = requestScope(serverOf(), {
    handler: "legacy.order.create",
    access: rule ?? access.everyone,
  });
  const handler = middy({ executionMode: mode }).handler(existing as never);
  return async (given: unknown): Promise<unknown> => handler(given as never, {} as never);
}

describe("an event without a known sender", () => {
  const others: [string, unknown][] = [
    ["of an unknown kind", [{ info: { fieldName: "orders" } }]],
    ["records of aws:sqs", { Records: [{ eventSource: "aws:sqs", body: "{}" }] }],
    ["of EventBridge", { "detail-type": "x", source: "y" }],
    ["of an unknown kind", { orders: 1 }],
    ["of an unknown kind", { version: "2.0", headers: null }],
    ["null", null],
    ["of type string", "text"],
  ];
  test.each([...requests, ...others])(
    "is refused before anything runs when a rule requires a sender: %s",
    async (kind, given) => {
      const existing = vi.fn();
      const rules = [
        access.authenticated,
        access.tenant,
        access.systemAdmin,
        access.anyOf(access.admin),
        access.roles("editor"),
      ];
      for (const rule of rules) {
        await expect(bare(existing, rule)(given)).rejects.toMatchObject({
          code: "unauthenticated",
        });
      }

      expect(existing).not.toHaveBeenCalled();
      expect(logs.filter(({ msg }) => msg === "request.failed")).toHaveLength(rules.length);
      expect(logs).toContainEqual(
        expect.objectContaining({
          level: "warn",
          handler: "legacy.order.create",
          message: expect.stringContaining(kind),
        }),
      );
    },
  );

  test.each([
    ...requests,
    ["of AppSync, several at once", [{ info: { fieldName: "orders" } }]] as const,
  ])(
    "is an anonymous request when everyone may send it, and crosses no tenants: %s",
    async (_, given) => {
      const seen = bare(
        (_event, { keelson: { user } }) => user.id ?? "nobody",
        access.anyOf(access.everyone, access.admin),
      );
      expect(await seen(given)).toBe("nobody");
      const crossing = bare((_event, { keelson }) => keelson.acrossTenants("a stranger asks"));
      await expect(crossing(given)).rejects.toMatchObject({ code: "access_denied" });
    },
  );
});

test("an event that is not HTTP gets a ctx too, and its error is logged and rethrown", async () => {
  const mode = requestScope(serverOf(), { handler: "legacy.queue.drain", access: access.everyone });
  const handler = middy({ executionMode: mode }).handler((async (
    given: { fails: boolean },
    { keelson }: AdoptedContext,
  ) => {
    if (given.fails) throw new ConflictError("poison");
    return { requestId: keelson.requestId, user: keelson.user.id, request: keelson.request };
  }) as never);
  const call = async (given: object) =>
    (handler as unknown as (event: object, context?: object) => Promise<object>)(given);
  expect(await call({ fails: false })).toEqual({
    requestId: expect.any(String),
    user: undefined,
    request: undefined,
  });
  await expect(call({ fails: true })).rejects.toMatchObject({ code: "poison" });
  expect(logs).toContainEqual(
    expect.objectContaining({
      msg: "request.failed",
      error: "poison",
      handler: "legacy.queue.drain",
    }),
  );
});

test("with writeOnce, a repeat gets the first response without running the handler again", async () => {
  let runs = 0;
  const call = adopted(
    async () => ({
      statusCode: 201,
      headers: { location: "/orders/1", "x-once": "a", "x-anew": "b" },
      body: JSON.stringify({ run: ++runs }),
    }),
    { use: [writeOnce({ replayHeaders: ["X-Once"] })] },
  );
  const headers = { authorization: `Bearer ${await tokenOf("once")}`, "idempotency-key": "k1" };
  const first = await call(event({ headers, body: '{"a":1}' }));
  const again = await call(event({ headers, body: '{"a":1}' }));
  expect([first.statusCode, again.statusCode, runs]).toEqual([201, 201, 1]);
  expect(again).toMatchObject({
    body: first.body,
    headers: { location: "/orders/1", "x-once": "a", "idempotent-replayed": "true" },
  });
  expect(again.headers["x-anew"]).toBeUndefined();
  expect((await call(event({ headers, body: '{"a":2}' }))).statusCode).toBe(422);
  expect((await call(event({ headers: { ...headers, "idempotency-key": "k2" } }))).statusCode).toBe(
    201,
  );
  expect(
    (await call(event({ headers: { authorization: headers.authorization } }))).statusCode,
  ).toBe(201);
  expect(runs).toBe(3);
});

test("with writeOnce, a retry with another IAM signature is of the same caller, but not of another one", async () => {
  let runs = 0;
  const call = adopted(async () => ({ statusCode: 200, body: String(++runs) }), {
    use: [writeOnce()],
  });
  const signed = (signature: string, requestContext: object) => {
    const authorization = `AWS4-HMAC-SHA256 Credential=AKIA/20261130, Signature=${signature}`;
    const given = event({ headers: { authorization, "idempotency-key": "iam" } });
    return { ...given, requestContext: { ...given.requestContext, ...requestContext } };
  };
  const by = (name: string) => ({
    authorizer: { iam: { userArn: `arn:aws:iam::1:user/${name}` } },
  });
  const bodies: string[] = [];
  for (const [signature, name] of [
    ["a", "ann"],
    ["b", "ann"],
    ["c", "bob"],
  ] as const)
    bodies.push((await call(signed(signature, by(name)))).body);
  // As a REST API names the users of a Cognito identity pool.
  const inPool = (id: string) => ({
    identity: {
      userArn: "arn:aws:sts::1:assumed-role/auth/CognitoIdentityCredentials",
      cognitoIdentityId: id,
      accessKey: `AKIA${id}`,
    },
  });
  for (const [signature, id] of [
    ["d", "cat"],
    ["e", "cat"],
    ["f", "dan"],
  ] as const)
    bodies.push((await call(signed(signature, inPool(id)))).body);
  expect(bodies).toEqual(["1", "1", "2", "3", "3", "4"]);
});

test("does not store a response that is too large, so a repeat runs again, with a signal of its own", async () => {
  let runs = 0;
  const large = adopted(
    async (_event, { keelson }) => ({
      statusCode: 200,
      body: ++runs === 1 ? "x".repeat(6_300_000) : String(keelson.signal?.aborted),
    }),
    { use: [writeOnce()] },
  );
  const headers = { authorization: `Bearer ${await tokenOf("large")}`, "idempotency-key": "k1" };
  const context = { getRemainingTimeInMillis: () => 30_000 };
  expect(JSON.parse((await large(event({ headers }), context)).body)).toMatchObject({
    error: "response_too_large",
  });
  expect((await large(event({ headers }), context)).body).toBe("false");
  const timed = adopted(async (_event, { keelson }) => ({
    statusCode: 200,
    body: String(keelson.signal?.aborted),
  }));
  expect((await timed(event(), context)).body).toBe("false");
});

test("refuses a response that leaves no room for the headers before it counts as done", async () => {
  let runs = 0;
  const call = adopted(
    async () => {
      runs += 1;
      const headers = { "content-type": "text/plain" };
      return { statusCode: 200, headers, body: "x".repeat(6_291_456 - 100) };
    },
    { use: [writeOnce()] },
  );
  const headers = { authorization: `Bearer ${await tokenOf("full")}`, "idempotency-key": "k1" };
  for (const _attempt of [1, 2])
    expect(JSON.parse((await call(event({ headers }))).body)).toMatchObject({
      error: "response_too_large",
    });
  expect(runs).toBe(2);
});

test("runs a failed call again, even one failed by its status; repeats a binary response byte for byte", async () => {
  let runs = 0;
  const bytes = Buffer.from([0, 255, 128]).toString("base64");
  const call = adopted(
    async () =>
      ++runs === 1
        ? { statusCode: 500 }
        : {
            statusCode: 200,
            body: bytes,
            isBase64Encoded: true,
            headers: { "content-type": "image/png" },
          },
    { use: [writeOnce()] },
  );
  const headers = { authorization: `Bearer ${await tokenOf("binary")}`, "idempotency-key": "k1" };
  expect((await call(event({ headers }))).statusCode).toBe(500);
  for (let n = 0; n < 2; n++)
    expect(await call(event({ headers }))).toMatchObject({
      statusCode: 200,
      body: bytes,
      isBase64Encoded: true,
    });
  expect(runs).toBe(2);
});

test("separates callers that only the handler can identify by their credentials", async () => {
  let runs = 0;
  const call = adopted(async () => ({ statusCode: 200, body: String(++runs) }), {
    use: [writeOnce()],
  });
  const of = async (authorization: string) =>
    (await call(event({ headers: { authorization, "idempotency-key": "same" } }))).body;
  expect([await of("Basic YW5u"), await of("Basic Ym9i"), await of("Basic YW5u")]).toEqual([
    "1",
    "2",
    "1",
  ]);
});

test("an adopted handler can commit, with a claim and without one", async () => {
  const call = adopted(
    async (_event, { keelson: ctx }) => {
      const put = { Put: { TableName: feature.table.name, Item: { pk: ctx.requestId } } };
      return ctx.commit([put], { statusCode: 201, headers: {}, body: ctx.requestId });
    },
    { use: [writeOnce()] },
  );
  const token = await tokenOf("committer");
  const headers = { authorization: `Bearer ${token}`, "idempotency-key": "c1" };
  const first = await call(event({ headers }));
  expect(await call(event({ headers }))).toMatchObject({ statusCode: 201, body: first.body });
  expect(await call(event({ headers: { authorization: `Bearer ${token}` } }))).toMatchObject({
    statusCode: 201,
  });
});

test.each([[undefined], [null], ["everyone"], [{}]])("the access %j is refused", (rule) => {
  expect(() =>
    requestScope(serverOf(), { handler: "legacy.order.create", access: rule as never }),
  ).toThrow("add an access rule, for example access.authenticated");
});

test("writeOnce without requestScope fails the first request before the handler runs, and names the fix", async () => {
  let ran = false;
  const handler = middy()
    .use(writeOnce())
    .handler((async () => (ran = true)) as never);
  await expect(
    (handler as unknown as (event: object, context: object) => Promise<unknown>)({}, {}),
  ).rejects.toThrow("requestScope(server, { handler, access })");
  expect(ran).toBe(false);
  for (const once of [
    "sometimes",
    "either",
    true,
    { key: "either", required: true },
    { waitMs: 5 },
  ])
    expect(() => writeOnce({ once: once as never })).toThrow("writeOnce: `once` is false or { key");
  for (const once of [false, {}, { key: "idempotency-key" }, { required: true, keepSeconds: 600 }])
    expect(() => writeOnce({ once } as WriteOnceOptions)).not.toThrow();
});

test.each<[object, string]>([
  [{ required: true, keepSeconds: 86_400 }, 'writeOnce: unknown option "required"'],
  [{ replays: "encrypted" }, "did you mean"],
  [{ replay: "Encrypted" }, 'writeOnce: replay is "Encrypted"; use "encrypted", or omit it'],
  [{ replay: true }, "writeOnce: replay is true"],
  [{ replayHeaders: "x-once" }, 'writeOnce: replayHeaders is "x-once"; list headers that a'],
  ...[["set-cookie"], ["X-Request-ID"], [""], [7], null].map((replayHeaders): [object, string] => [
    { replayHeaders },
    "; list headers that a response can set, without Set-Cookie",
  ]),
])("writeOnce refuses %j", (options, message) => {
  expect(() => writeOnce(options as WriteOnceOptions)).toThrow(message);
});

test("refuses a handler name that is invalid or taken", () => {
  expect(() => requestScope(serverOf(), { handler: "order", access: access.everyone })).toThrow(
    "<feature>.<entity>.<operation>",
  );
  expect(() =>
    requestScope(serverOf(), { handler: "legacy.order.show", access: access.everyone }),
  ).toThrow("lambdaHandler");
});

test("refuses two credentials before an existing handler sees them, under the request's own ID", async () => {
  const existing = vi.fn();
  const result = await adopted(existing)(
    event({ headers: { authorization: "Bearer a,Bearer b", "x-request-id": "r1" } }),
  );

  expect([result.statusCode, JSON.parse(result.body)]).toMatchObject([
    400,
    { error: "malformed_request", requestId: "r1" },
  ]);
  expect(existing).not.toHaveBeenCalled();
});

test("logs the caller of a request that is refused before an existing handler sees it", async () => {
  const token = await signToken(
    { secret, userId: "ann", tenantId: "acme", roles: [] },
    { now: Date.now },
  );
  const headers = { authorization: `Bearer ${token}`, host: "a, b" };
  expect((await adopted(vi.fn())(event({ headers }))).statusCode).toBe(400);

  expect(logs).toContainEqual(
    expect.objectContaining({ msg: "request.failed", tenantId: "acme", userId: "ann" }),
  );
});

test("a run has one signal in its ctx and in the ambient context, with a claim and without one", async () => {
  const existing: Handler = (_event, { keelson }) => {
    const signal = currentContext()?.signal;
    return {
      statusCode: 200,
      body: JSON.stringify([signal instanceof AbortSignal, signal === keelson.signal]),
    };
  };
  const context = { getRemainingTimeInMillis: () => 10_000 };
  const headers = { "x-request-id": "one-signal" };

  expect(
    (
      await adopted(existing, { use: [writeOnce()] as middy.MiddlewareObj[] })(
        event({ headers }),
        context,
      )
    ).body,
  ).toBe("[true,true]");
  expect((await adopted(existing)(event(), context)).body).toBe("[true,true]");
});
