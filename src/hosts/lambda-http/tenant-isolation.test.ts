import middy from "@middy/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { signToken } from "../../base/identity/token.ts";
import { systemClock } from "../../base/process/clock.ts";
import { lambdaContext, lambdaEvent } from "../../tools/testing/lambda-event.ts";
import { type AdoptedContext, requestScope } from "../middy/middy.ts";
import { lambdaHandler, lambdaHttp } from "./http-handler.ts";

const secret = "a secret that is long enough for these tests";
const feature = defineFeature("rooms", (r) => {
  r.table("rooms", { partitionKey: "pk", tenant: true });
  const handler = async (ctx: { readonly user: object }) => ctx.user;
  r.query("room.open", { route: "GET /open", access: access.everyone, handler });
  r.query("room.own", { route: "GET /own", access: access.authenticated, handler });
  r.query("room.all", { route: "GET /all", access: access.systemAdmin, handler });
});
const serverOf = () => buildServer({ features: [feature], auth: { secret } });

let logs: Record<string, unknown>[] = [];
beforeEach(() => {
  logs = [];
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    logs.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => void vi.restoreAllMocks());

const http = lambdaHttp(serverOf());

// Safe: what Middy's types ask of a context beyond Lambda's is nothing that a handler here reads.
const contextOf = (tenantId?: string) =>
  lambdaContext(tenantId === undefined ? {} : { tenantId }) as never;

/** The answer to a request with the token of a tenant, if any, in the environment that is kept for another, if any. */
async function ask(
  path: string,
  { token, isolatedTo }: { token?: string; isolatedTo?: string },
  handler: unknown = http,
) {
  const roles = path === "/all" ? ["systemAdmin"] : [];
  const signed =
    token === undefined
      ? undefined
      : await signToken({ secret, userId: "ann", tenantId: token, roles }, systemClock);
  const headers = signed === undefined ? {} : { authorization: `Bearer ${signed}` };
  const event = lambdaEvent("restApi", { path, headers });
  // Safe: each of the handlers takes such an event.
  const called = handler as typeof http;
  const { statusCode, body } = await called(event as never, contextOf(isolatedTo));
  return { statusCode, body: JSON.parse(String(body)) as Record<string, unknown> };
}

test.each([
  ["/own", "acme", "acme", 200],
  ["/own", "globex", undefined, 200],
  ["/own", "globex", "", 200],
  ["/own", "globex", "acme", 403],
  ["/own", "acme", "ACME", 403],
  ["/own", undefined, "acme", 401],
  ["/open", undefined, "acme", 200],
  ["/open", "acme", "acme", 200],
  ["/open", "globex", "acme", 403],
  ["/all", "globex", "acme", 403],
  ["/all", "acme", "acme", 200],
])(
  "answers GET %s with a token of %s in an environment of %s with %i",
  async (path, token, isolatedTo, status) => {
    expect(
      (await ask(path, { token, isolatedTo } as { token?: string; isolatedTo?: string }))
        .statusCode,
    ).toBe(status);
  },
);

test("refuses another tenant's token with the reason, and logs whose token it was", async () => {
  const { body } = await ask("/own", { token: "globex", isolatedTo: "acme" });

  expect(body).toMatchObject({
    error: "access_denied",
    message: "Access denied: tenant.isolation",
  });
  expect(logs).toMatchObject([
    {
      msg: "request.failed",
      level: "warn",
      tenantId: "globex",
      userId: "ann",
      handler: "rooms.room.own",
    },
    {
      msg: "request.completed",
      level: "info",
      tenantId: "globex",
      userId: "ann",
      handler: "rooms.room.own",
      status: 403,
    },
  ]);
});

test("a function of one handler and an adopted handler refuse another tenant's token too", async () => {
  const one = lambdaHandler(serverOf(), "rooms.room.own");
  const existing = vi.fn(async () => ({ statusCode: 200, body: "{}" }));
  const adopted = middy({
    executionMode: requestScope(serverOf(), {
      handler: "legacy.room.show",
      access: access.everyone,
    }),
  }).handler(existing as never);

  expect((await ask("/own", { token: "globex", isolatedTo: "acme" }, one)).statusCode).toBe(403);
  expect((await ask("/rooms", { token: "globex", isolatedTo: "acme" }, adopted)).statusCode).toBe(
    403,
  );
  expect(existing).not.toHaveBeenCalled();
});

test("an event that is not HTTP runs as the tenant that Lambda names, and may not cross tenants", async () => {
  const handler = middy({
    executionMode: requestScope(serverOf(), {
      handler: "legacy.room.import",
      access: access.everyone,
    }),
  }).handler((async (_event: unknown, { keelson }: AdoptedContext) => {
    const { user } = keelson;
    keelson.acrossTenants("import");
    return user;
  }) as never);
  const import_ = (tenantId?: string) => handler({ import: 1 } as never, contextOf(tenantId));

  await expect(import_("acme")).rejects.toThrow("ctx.acrossTenants takes systemAdmin");
  expect(logs.at(-1)).toMatchObject({ tenantId: "acme" });
  expect(await import_()).toEqual({ id: undefined, tenantId: undefined, roles: [], kind: "user" });
});
