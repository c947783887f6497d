import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, createTenantConfig, defineFeature, reply } from "keelson";
import { type HttpApiResult, lambdaHttp } from "keelson/lambda";
import {
  type Caller,
  lambdaContext,
  lambdaEvent,
  startTestApp,
  type TestApp,
} from "keelson/testing";
import { stripe } from "keelson/webhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type ErrorCode, errorCodes } from "../../src/base/errors/error-codes.ts";

// Each code of keelson's own is made to happen by a server. That its answer is what the document says is held by
// test/support/hold-responses.ts, as in all tests.

const order = z.object({ item: z.string() });
let held = Promise.withResolvers<object>();
const broken = (): never => {
  throw new Error("broken");
};

const probe = defineFeature("probe", (r) => {
  const config = r.config({
    keys: { most: createTenantConfig("number", { default: 1, bounds: { min: 1, max: 9 } }) },
  });
  const rows = r.table("rows", { partitionKey: "pk", sortKey: "sk", tenant: true });
  const anybody = { access: access.everyone };
  const user = { access: access.authenticated };
  r.query("order.list", { route: "GET /orders", access: access.admin, handler: () => [] });
  r.write("order.create", {
    ...user,
    route: "POST /orders",
    input: order,
    handler: (_ctx, { item }) => ({ item }),
  });
  const orders = r.quota("orders", { limit: 0, window: "forever" });
  r.write("order.count", {
    ...user,
    route: "POST /counts",
    handler: (ctx) => orders.add(ctx, 1),
  });
  r.write("order.wait", { ...user, route: "POST /waits", handler: () => held.promise });
  const once = { required: true, keepSeconds: 300 } as const;
  r.write("order.charge", {
    ...user,
    route: "POST /charges",
    once,
    handler: (ctx) => ctx.step("charge", {}, broken),
  });
  r.webhook("order.paid", {
    route: "POST /hooks",
    verify: stripe({ secret: "whsec_1" }),
    tenant: () => "acme",
    handler: () => undefined,
  });
  r.query("order.broken", { ...anybody, route: "GET /broken", handler: broken });
  // Safe: a wrong result is what is tested.
  r.query("order.wrong", {
    ...anybody,
    route: "GET /wrong",
    output: order,
    handler: () => ({ item: 7 }) as never,
  });
  const large = () => reply("x".repeat(7_000_000), { headers: { "content-type": "text/plain" } });
  r.query("order.large", { ...anybody, route: "GET /large", handler: large });
  r.query("order.slow", { ...anybody, route: "GET /slow", handler: () => held.promise });
  r.query("most.show", {
    ...user,
    route: "GET /most",
    handler: async (ctx) => ({ most: await ctx.config(config.most) }),
  });
  r.query("row.show", {
    ...user,
    route: "GET /row",
    handler: async (ctx) => {
      const { Item } = await ctx.db.send(
        new GetCommand({ TableName: rows.name, Key: await rows.key(ctx, "rows", "a") }),
      );
      return { found: Item !== undefined };
    },
  });
});
const options = {
  features: [probe],
  tenants: true,
  once: { waitMs: 50 },
  limits: { bodyBytes: 200_000, bufferedBytes: 200_000 },
};

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly as?: Caller;
}
type Ask = (
  path: string,
  sent?: Sent,
) => Promise<{ readonly status: number | undefined; readonly error: unknown }>;
type Way = (ask: Ask) => Promise<{ readonly status: number | undefined; readonly error: unknown }>;

let app: TestApp;
const isolated = buildServer({ ...options, isolation: {} });
const ann: Caller = { id: "ann", tenantId: "acme" };
const errorOf = (text: string | undefined) =>
  text?.startsWith('{"error"') ? JSON.parse(text).error : undefined;

beforeAll(async () => {
  const server = buildServer(options);
  app = await startTestApp(server);
  await server.tenants.create({ id: "gone" });
  await server.tenants.suspend("gone", { reason: "unpaid" });
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const variables = {
    ...app.env,
    AWS_ENDPOINT_URL_STS: "http://127.0.0.1:9",
    KEELSON_ISOLATION_ROLE: "arn:aws:iam::123456789012:role/tenants",
    AWS_MAX_ATTEMPTS: "1",
  };
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await app.close();
});
beforeEach(() => {
  held = Promise.withResolvers();
});

const inContainer: Ask = async (path, sent) => {
  const response = await app.fetch(path, sent);
  return { status: response.status, error: errorOf(await response.text()) };
};

function inLambda(server = buildServer(options), timeoutMs = 30_000): Ask {
  const handler = lambdaHttp(server);
  return async (path, { as, headers, ...sent } = {}) => {
    const authorization =
      as === undefined ? {} : { authorization: `Bearer ${await app.token(as)}` };
    const event = lambdaEvent("httpApi", {
      ...sent,
      path,
      headers: { ...headers, ...authorization },
    });
    const { statusCode, body }: HttpApiResult = await handler(event, lambdaContext({ timeoutMs }));
    return { status: statusCode, error: errorOf(body) };
  };
}

const json = { "content-type": "application/json" };
let keys = 0;
const newKey = () => ({ "idempotency-key": `key-${++keys}` });

/** What makes each code happen, on both hosts. */
const onBoth = {
  malformed_request: (ask) => ask("/orders", { method: "POST", as: ann, headers: json, body: "{" }),
  idempotency_key_required: (ask) => ask("/charges", { method: "POST", as: ann }),
  unauthenticated: (ask) => ask("/most"),
  signature_invalid: (ask) => ask("/hooks", { method: "POST", headers: json, body: "{}" }),
  access_denied: (ask) => ask("/orders", { as: ann }),
  tenant_suspended: (ask) => ask("/most", { as: { id: "eve", tenantId: "gone" } }),
  not_found: (ask) => ask("/nowhere"),
  method_not_allowed: (ask) => ask("/orders", { method: "DELETE" }),
  request_in_progress: async (ask) => {
    const sent = { method: "POST", as: ann, headers: newKey() };
    const answers = [ask("/waits", sent), ask("/waits", sent)];
    const first = await Promise.race(answers);
    held.resolve({});
    await Promise.all(answers);
    return first;
  },
  unknown_outcome: async (ask) => {
    const sent = { method: "POST", as: ann, headers: newKey() };
    await ask("/charges", sent);
    return ask("/charges", sent);
  },
  payload_too_large: (ask) =>
    ask("/orders", { method: "POST", as: ann, body: { item: "x".repeat(200_000) } }),
  unsupported_media_type: (ask) =>
    ask("/orders", {
      method: "POST",
      as: ann,
      headers: { "content-type": "text/csv" },
      body: "item",
    }),
  validation_error: (ask) => ask("/orders", { method: "POST", as: ann, body: {} }),
  idempotency_key_reused: async (ask) => {
    const headers = newKey();
    await ask("/orders", { method: "POST", as: ann, headers, body: { item: "a" } });
    return ask("/orders", { method: "POST", as: ann, headers, body: { item: "b" } });
  },
  too_many_requests: async (ask) => {
    const as = { id: `user-${++keys}`, tenantId: "acme" };
    const body = Array.from({ length: 100 }, () => ({ level: "debug", msg: "many" }));
    for (let n = 0; n < 5; n++) await ask("/log", { method: "POST", as, body });
    return ask("/log", { method: "POST", as, body });
  },
  quota_exceeded: (ask) => ask("/counts", { method: "POST", as: ann }),
  internal_error: (ask) => ask("/broken"),
  response_mismatch: (ask) => ask("/wrong"),
} satisfies Partial<Record<ErrorCode, Way>>;

/** What only one of them does. */
const onOne = {
  response_too_large: () => inLambda()("/large"),
  config_unavailable: () => {
    app.faults.before("BatchGetItem", 1).fail("InternalServerError");
    return inContainer("/most", { as: { id: "eve", tenantId: "unread" } });
  },
  isolation_unavailable: () => inLambda(isolated)("/row", { as: ann }),
  overloaded: async () => {
    const upload = () =>
      inContainer("/waits", {
        method: "POST",
        as: ann,
        headers: newKey(),
        body: { text: "x".repeat(150_000) },
      });
    const answers = [upload(), upload()];
    const first = await Promise.race(answers);
    held.resolve({});
    await Promise.all(answers);
    return first;
  },
  timeout: () => inLambda(undefined, 150)("/slow"),
} satisfies Record<Exclude<ErrorCode, keyof typeof onBoth>, Way>;

describe.each([
  ["a container", inContainer],
  ["Lambda", inLambda()],
])("%s", (_, ask) => {
  test.each(Object.entries<Way>(onBoth))(
    "answers %s as its server's document states",
    async (code, way) => {
      expect(await way(ask)).toEqual({ status: errorCodes[code as ErrorCode], error: code }); // safe: a key of the table
    },
  );
});

test.each(Object.entries<Way>(onOne))(
  "a server answers %s as its document states",
  async (code, way) => {
    expect(await way(inContainer)).toEqual({ status: errorCodes[code as ErrorCode], error: code }); // safe: a key of the table
  },
);
