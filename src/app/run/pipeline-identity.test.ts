// The caller of a request, and the callers that a route admits.
import { beforeAll, expect, test } from "vitest";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { PipelineError } from "../../base/errors/errors.ts";
import { type AccessRule, access, anonymous } from "../../base/identity/access.ts";
import type { GatewayClaims } from "../../base/identity/authenticator.ts";
import { signToken } from "../../base/identity/token.ts";
import { systemClock } from "../../base/process/clock.ts";
import { defineFeature } from "../features/feature.ts";
import { runInScope } from "../runtime/scope.ts";
import { buildServer } from "../server/server.ts";
import { authorize } from "./pipeline.ts";

const secret = "s".repeat(32);
const rooms = defineFeature("rooms", (r) => {
  const handler = async ({ user }: { readonly user: object }) => user;
  r.query("room.open", { route: "GET /open", access: access.everyone, handler });
  r.query("room.own", { route: "GET /own", access: access.authenticated, handler });
  r.query("room.edit", { route: "GET /edit", access: access.roles("editor"), handler });
});
const server = buildServer({ features: [rooms], auth: { secret } });
const app = hostless(server);

const ann = { id: "ann", tenantId: "acme", roles: [], kind: "user" };
const bob: GatewayClaims = { by: "jwt", claims: { sub: "bob", tenantId: "globex" } };
const bobUser = { id: "bob", tenantId: "globex", roles: [], kind: "user" };
const nobody = { roles: [], kind: "user" };
let token: string;
beforeAll(async () => {
  const signed = { secret, userId: "ann", tenantId: "acme", roles: [] };
  token = `Bearer ${await signToken(signed, systemClock)}`;
});

/** The status, and the caller that the handler saw or the error's message. */
async function asked(target: string, headers = {}, gatewayClaims?: GatewayClaims, of = app) {
  const { status, json } = await of.ask(target, { headers, gatewayClaims });
  const body = json();
  return [status, status === 200 ? body : (body as { readonly message: string }).message];
}

test("knows the caller by a token or by the gateway's claims, on open routes as well", async () => {
  for (const target of ["GET /open", "GET /own"]) {
    expect(await asked(target, { authorization: token })).toEqual([200, ann]);
    expect(await asked(target, {}, bob)).toEqual([200, bobUser]);
    expect(await asked(target, { authorization: token }, bob)).toEqual([200, bobUser]);
  }
});

test("an open route admits every caller, even with invalid credentials", async () => {
  expect(await asked("GET /open")).toEqual([200, nobody]);
  expect(await asked("GET /open", { authorization: "Bearer a.b.c" })).toEqual([200, nobody]);
  const nameless: GatewayClaims = { by: "jwt", claims: { sub: "", tenantId: "acme" } };
  expect(await asked("GET /open", {}, nameless)).toEqual([200, nobody]);
});

test("asks for credentials if a route needs them, or explains why it refuses a token", async () => {
  const { status, headers, json } = await app.ask("GET /own");
  expect(status).toBe(401);
  expect(headers["www-authenticate"]).toBe("Bearer");
  expect(json()).toMatchObject({ error: "unauthenticated", message: "Authentication required" });

  expect(await asked("GET /own", { authorization: "Bearer a.b.c" })).toEqual([
    401,
    "token is malformed",
  ]);
});

test("refuses a caller without the role, and logs who it was", async () => {
  const { status, json, lines } = await app.ask("GET /edit", { headers: { authorization: token } });

  expect(status).toBe(403);
  expect(json()).toMatchObject({
    error: "access_denied",
    message: "Access denied: roles(editor)",
  });
  expect(lines).toMatchObject([
    { msg: "request.failed", userId: "ann", tenantId: "acme", handler: "rooms.room.edit" },
  ]);
});

const unavailable = new PipelineError("keys cannot be fetched", 503, {
  cause: new Error("refused"),
});
const failing = hostless(
  server,
  {},
  {
    authenticator: {
      authenticate: () => Promise.reject(unavailable),
      recognize: async () => undefined,
    },
  },
);

test("only an open route works while callers cannot be identified", async () => {
  const headers = { authorization: token };
  const open = await failing.ask("GET /open", { headers });
  expect([open.status, open.json()]).toEqual([200, nobody]);
  expect(open.lines).toMatchObject([
    {
      level: "warn",
      msg: "identity.unavailable",
      status: 503,
      message: "keys cannot be fetched",
      causes: [{ message: "refused" }],
    },
  ]);

  const guarded = await failing.ask("GET /own", { headers });
  expect([guarded.status, guarded.json()]).toEqual([
    503,
    expect.objectContaining({ message: "keys cannot be fetched" }),
  ]);
  expect(guarded.lines).toMatchObject([{ msg: "request.failed" }]);
});

test("does not authenticate a request without credentials on an open route", async () => {
  const { status, lines } = await failing.ask("GET /open");
  expect([status, lines]).toEqual([200, []]);
  expect((await failing.ask("GET /own")).status).toBe(503);
});

/** The outcome of `authorize`, in a process that may be isolated to a tenant. */
function authorized(
  isolatedTo: string | undefined,
  rule: AccessRule = access.authenticated,
  headers: Readonly<Record<string, string>> = { authorization: token },
) {
  return runInScope(app.runtime, { headers, isolatedTo }, async (scope) => {
    const outcome = await Promise.resolve(
      authorize(scope, { headers, gatewayClaims: undefined }, rule),
    ).catch((error: PipelineError) => error.message);
    return { outcome, scope };
  });
}

test.each([
  { served: "only acme", tenant: "acme", rule: access.authenticated },
  { served: "only acme", tenant: "acme", rule: access.everyone },
  { served: "every tenant", tenant: undefined, rule: access.authenticated },
])(
  "a process for $served admits acme's caller on a route for $rule.kind",
  async ({ tenant, rule }) => {
    expect((await authorized(tenant, rule)).outcome).toEqual(ann);
  },
);

test.each([
  { tenant: "globex", rule: access.authenticated },
  { tenant: "globex", rule: access.everyone },
  { tenant: "ACME", rule: access.everyone },
])(
  "a process for only $tenant refuses acme's caller on a route for $rule.kind",
  async ({ tenant, rule }) => {
    const { outcome, scope } = await authorized(tenant, rule);

    expect(outcome).toBe("Access denied: tenant.isolation");
    expect(scope.user).toEqual(ann);
  },
);

test("a process for one tenant serves anonymous callers on open routes", async () => {
  expect((await authorized("globex", access.everyone, {})).outcome).toBe(anonymous);
});

test("a caller may join its trace only if the route requires authentication", async () => {
  const identified = async (rule: AccessRule) => {
    const { scope } = await authorized(undefined, rule);
    return scope.isIdentified;
  };

  expect(await identified(access.authenticated)).toBe(true);
  expect(await identified(access.everyone)).toBe(false);
});
