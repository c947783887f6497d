import middy from "@middy/core";
import {
  access,
  buildServer,
  createTenantConfig,
  defineFeature,
  PermanentError,
  type ServerOptions,
  sse,
} from "keelson";
import { type HttpApiResult, lambdaHandler, lambdaHttp } from "keelson/lambda";
import { requestScope } from "keelson/middy";
import {
  type Caller,
  lambdaContext,
  lambdaEvent,
  startTestApp,
  type TestApp,
  type TestFetchOptions,
} from "keelson/testing";
import { signedHeaders, stripe } from "keelson/webhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ran: string[] = [];

const memos = defineFeature("memos", (r) => {
  r.config({ keys: { limit: createTenantConfig("number", { default: 1 }) } });
  const who = { access: access.authenticated };
  r.query("memo.show", { ...who, route: "GET /notes", handler: ({ user }) => ({ id: user.id }) });
  r.query("memo.open", { access: access.everyone, route: "GET /open", handler: () => ({}) });
  r.query("memo.admin", { access: access.admin, route: "GET /admin", handler: () => ({}) });
  r.query("memo.follow", {
    ...who,
    route: "GET /follow",
    output: sse(z.number()),
    handler: async function* () {
      yield { data: 1 };
    },
  });
  const index = r.job("memo.index", {
    input: z.object({}),
    handler: async ({ user }) => void ran.push(`job ${user.tenantId}`),
  });
  const written = r.event("jotting.written", z.object({}));
  r.on(written, {
    name: "count",
    handler: async ({ user }) => void ran.push(`event ${user.tenantId}`),
  });
  r.write("memo.write", {
    ...who,
    route: "POST /notes",
    handler: async (ctx) => {
      await ctx.enqueue(index, {});
      await ctx.enqueue(index, {}, { delaySeconds: 600 });
      await ctx.publish(written, {});
      await ctx.delivery.send("log", { text: "hello" });
      return {};
    },
  });
  r.receive("memo.stored", {
    ...{ source: "aws.s3", detailType: "Object Created", input: z.object({ key: z.string() }) },
    tenant: ({ detail }) => detail.key.split("/")[0],
    handler: ({ user }) => void ran.push(`received ${user.tenantId}`),
  });
  r.webhook("memo.paid", {
    route: "POST /hooks",
    verify: stripe({ secret: hookSecret }),
    input: z.object({ id: z.string(), account: z.string() }),
    id: ({ id }) => id,
    tenant: ({ account }) => account,
    handler: ({ user }) => void ran.push(`hook ${user.tenantId}`),
  });
});

const secret = "a secret that every host of this test shares";
const optionsOf = (auth: ServerOptions["auth"] = { secret, apiKeys: true }) => ({
  ...{ features: [memos], tenants: true, auth },
});
const server = buildServer(optionsOf());
const { tenants } = server;
let app: TestApp;
let keyOfGone: string;

const callerOf = (tenantId: string): Caller => ({ id: "ann", tenantId, roles: ["admin"] });
const gone = callerOf("gone");

beforeAll(async () => {
  app = await startTestApp(server);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  await tenants.create({ id: "gone" });
  await tenants.create({ id: "here" });
  const key = await app.fetch("/api-keys", { as: gone, body: { name: "billing", roles: [] } });
  ({ key: keyOfGone } = (await key.json()) as { readonly key: string }); // safe: as the route answers
  await tenants.suspend("gone", { reason: "a reason of ours" });
});
beforeEach(() => {
  ran.length = 0;
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await app.close();
});

const refused = [403, "tenant_suspended"];
const answered = (status: number | undefined, body: string | undefined) => [
  status,
  body?.startsWith('{"error"') ? JSON.parse(body).error : undefined,
];
async function ask(path: string, options?: TestFetchOptions) {
  const response = await app.fetch(path, options);
  return answered(response.status, await response.text());
}

let hooks = 0;
async function hookOf(account: string) {
  const body = JSON.stringify({ id: `e${++hooks}`, account });
  const signed = await signedHeaders(stripe({ secret: hookSecret }), body);
  return { method: "POST", body, headers: { "content-type": "application/json", ...signed } };
}

describe("a container refuses a suspended tenant", () => {
  test.each<[string, TestFetchOptions]>([
    ["GET /notes", { as: gone }],
    ["POST /notes", { as: gone }],
    ["GET /open", { as: gone }],
    ["GET /admin", { as: { ...gone, roles: [] } }],
    ["GET /follow", { as: gone }],
    ["GET /config", { as: gone }],
    ["GET /api-keys", { as: gone }],
    ["POST /log", { as: gone, body: { level: "info", msg: "hello" } }],
  ])("at %s", async (route, options) => {
    const [method = "", path = ""] = route.split(" ");
    expect(await ask(path, { method, ...options })).toEqual(refused);
    expect(ran).toEqual([]);
  });

  test("without telling it the reason, and logs whose request it was", async () => {
    const response = await app.fetch("/notes", { as: gone });
    expect(await response.json()).toEqual({
      ...{ error: "tenant_suspended", message: "The tenant is suspended" },
      requestId: response.headers.get("x-request-id"),
    });
    expect(app.logs.at(-1)).toMatchObject({
      msg: "request.completed",
      tenantId: "gone",
      userId: "ann",
    });
  });

  test("by its API keys", async () => {
    const bearer = { authorization: `Bearer ${keyOfGone}` };
    expect(await ask("/notes", { headers: { "x-api-key": keyOfGone } })).toEqual(refused);
    expect(await ask("/notes", { headers: bearer })).toEqual(refused);
  });

  test("in webhooks, which run for others", async () => {
    expect(await ask("/hooks", await hookOf("gone"))).toEqual(refused);
    expect(await ask("/hooks", await hookOf("here"))).toEqual([204, undefined]);
    expect(ran).toEqual(["hook here"]);
  });

  describe("in events of others", () => {
    const storedBy = (tenant: string) => ({
      ...{ source: "aws.s3", "detail-type": "Object Created", detail: { key: `${tenant}/a.pdf` } },
    });

    test("which go to the dead-letter queue, until it is resumed", async () => {
      const error = await app.deliver(storedBy("gone")).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(PermanentError);
      expect(error).toMatchObject({ message: 'memos.memo.stored: the tenant "gone" is suspended' });
      expect(await app.deliver(storedBy("here"))).toBe("processed");
      expect(ran).toEqual(["received here"]);
    });

    test("but not for good if the registry cannot be read", async () => {
      app.faults.before("GetItem", 1).fail("ResourceNotFoundException");
      const error = await app.deliver(storedBy("unread")).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ status: 503 });
      expect(error).not.toBeInstanceOf(PermanentError);
    });
  });

  test("in server.run, and in the calls of its tests", async () => {
    const run = server.run({ reason: "a test", tenantId: "gone" }, () => ran.push("run"));
    await expect(run).rejects.toMatchObject({ status: 403, code: "tenant_suspended" });
    const call = app.call("memos.memo.show", {}, { as: gone });
    await expect(call).rejects.toMatchObject({ code: "tenant_suspended" });
    await server.run({ reason: "a test" }, () => ran.push("system"));
    expect(ran).toEqual(["system"]);
  });

  test("and nobody else: active and unregistered tenants, and callers without one", async () => {
    for (const tenantId of ["here", "never-registered"])
      expect(await ask("/notes", { as: callerOf(tenantId) })).toEqual([200, undefined]);
    expect(await ask("/open")).toEqual([200, undefined]);
    expect(await ask("/health/ready")).toEqual([200, undefined]);
  });

  test("until it is resumed", async () => {
    await tenants.create({ id: "back" });
    const asked = () => ask("/notes", { as: callerOf("back") });
    expect(await asked()).toEqual([200, undefined]);
    await tenants.suspend("back", { reason: "unpaid" });
    expect(await asked()).toEqual(refused);
    await tenants.resume("back");
    expect(await asked()).toEqual([200, undefined]);
  });
});

test("a caller whom auth.resolve identifies is refused with its tenant", async () => {
  const resolving = buildServer(
    optionsOf({
      resolve: ({ headers }) => ({ id: "ann", tenantId: String(headers["x-tenant"]), roles: [] }),
    }),
  );
  const other = await startTestApp(resolving);
  try {
    await resolving.tenants.create({ id: "gone" });
    await resolving.tenants.suspend("gone", { reason: "unpaid" });
    const asked = async (tenant: string) =>
      (await other.fetch("/notes", { headers: { "x-tenant": tenant } })).status;
    expect([await asked("gone"), await asked("here")]).toEqual([403, 200]);
  } finally {
    await other.close();
  }
});

describe("a function refuses a suspended tenant", () => {
  const http = lambdaHttp(buildServer(optionsOf()));
  const tokenOf = async (tenantId: string) => ({
    authorization: `Bearer ${await app.token(callerOf(tenantId))}`,
  });
  const invoke = async (handler: typeof http, sent: object, isolatedTo?: string) => {
    const context = lambdaContext({ ...(isolatedTo !== undefined && { tenantId: isolatedTo }) });
    const result: HttpApiResult = await handler(lambdaEvent("httpApi", sent as never), context);
    return answered(result.statusCode, result.body);
  };

  test("by its token and its API key, in the function of all routes and of one", async () => {
    const one = lambdaHandler(buildServer(optionsOf()), "memos.memo.show");
    for (const handler of [http, one]) {
      const sent = { path: "/notes", headers: await tokenOf("gone") };
      expect(await invoke(handler, sent)).toEqual(refused);
      const headers = { "x-api-key": keyOfGone };
      expect(await invoke(handler, { path: "/notes", headers })).toEqual(refused);
      expect(await invoke(handler, { path: "/notes", headers: await tokenOf("here") })).toEqual([
        200,
        undefined,
      ]);
    }
  });

  test("by the claims of a gateway, in an isolated environment, and in a webhook", async () => {
    const event = lambdaEvent("httpApi", { path: "/notes" });
    const claims = { sub: "ann", tenantId: "gone" };
    const authorizer = { jwt: { claims, scopes: null } };
    const requestContext = { ...event.requestContext, authorizer };
    const given = { ...event, requestContext } as typeof event; // safe: the shape of a JWT authorizer
    const result: HttpApiResult = await http(given, lambdaContext());
    expect(answered(result.statusCode, result.body)).toEqual(refused);
    const sent = { path: "/notes", headers: await tokenOf("gone") };
    expect(await invoke(http, sent, "gone")).toEqual(refused);
    expect(await invoke(http, { path: "/hooks", ...(await hookOf("gone")) })).toEqual(refused);
  });

  test("in adopted handlers of Middy, also for an event of its isolated environment", async () => {
    const adopted = (rule: typeof access.everyone) =>
      middy({
        executionMode: requestScope(buildServer(optionsOf()), {
          handler: "memos.memo.old",
          access: rule,
        }),
      }).handler((() => ({ statusCode: 204 })) as never) as unknown as typeof http; // safe: as Lambda calls it
    const sent = { path: "/old", headers: await tokenOf("gone") };
    for (const rule of [access.authenticated, access.everyone])
      expect(await invoke(adopted(rule), sent)).toEqual(refused);
    const other = (tenantId: string) =>
      adopted(access.everyone)({ Records: [] } as never, lambdaContext({ tenantId }));
    await expect(other("gone")).rejects.toMatchObject({ code: "tenant_suspended" });
    expect(await other("here")).toEqual({ statusCode: 204 });
  });
});

test("accepted work of a suspended tenant still runs: jobs, later jobs, events and deliveries", async () => {
  await tenants.create({ id: "leaving" });
  expect(await ask("/notes", { method: "POST", as: callerOf("leaving") })).toEqual([
    ...[200, undefined],
  ]);
  await tenants.suspend("leaving", { reason: "left" });
  await app.settled();
  await app.clock.advance(601_000);
  await app.settled();
  expect(ran.toSorted()).toEqual(["event leaving", "job leaving", "job leaving"]);
  expect(app.logs.filter(({ msg }) => msg === "delivery.message")).toMatchObject([
    { tenantId: "leaving" },
  ]);
});

describe("the check of a tenant", () => {
  const readsOf = async (tenantId: string, path = "/notes") => {
    const before = app.calls["GetItem"] ?? 0;
    await ask(path, { as: callerOf(tenantId) });
    return (app.calls["GetItem"] ?? 0) - before;
  };

  test("costs one read per tenant and five seconds, and none in between", async () => {
    expect([await readsOf("counted"), await readsOf("counted")]).toEqual([1, 0]);
    expect(await readsOf("counted-too")).toBe(1);
    await app.clock.advance(5_000);
    expect([await readsOf("counted"), await readsOf("counted")]).toEqual([1, 0]);
  });

  test("costs nothing without a tenant, and without the option", async () => {
    const plain = await startTestApp(buildServer({ features: [memos] }));
    try {
      await plain.fetch("/notes", { as: callerOf("acme") });
      expect(plain.calls["GetItem"]).toBeUndefined();
    } finally {
      await plain.close();
    }
  });

  test("keeps the last known state while the registry cannot be read, and is a 503 without one", async () => {
    const unreadable = () => app.logs.filter(({ msg }) => msg === "tenant.registry_unreadable");
    const before = unreadable().length;
    await readsOf("known");
    await app.clock.advance(5_000);
    app.faults.before("GetItem", 1).fail("ResourceNotFoundException");
    expect(await ask("/notes", { as: callerOf("known") })).toEqual([200, undefined]);
    app.faults.before("GetItem", 1).fail("ResourceNotFoundException");
    const response = await app.fetch("/notes", { as: callerOf("unknown") });
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(unreadable().length - before).toBe(2);
  });
});
