import {
  AccessDeniedError,
  access,
  buildServer,
  type CallerRequest,
  defineFeature,
  type ResolveCaller,
} from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AuthOptions, authProblems } from "../../base/identity/auth-options.ts";
import type { Authenticator } from "../../base/identity/authenticator.ts";
import { lazy } from "../../base/process/lazy.ts";
import { createCallers } from "./callers.ts";

const caller = { id: "ann", tenantId: "acme", roles: ["editor"] };
const user = { ...caller, kind: "user" };
const rooms = defineFeature("rooms", (r) => {
  const show = { handler: async ({ user }: { readonly user: unknown }) => user };
  r.query("room.show", { route: "GET /room", access: access.authenticated, ...show });
  r.query("room.look", { route: "GET /open", access: access.everyone, ...show });
  r.write("room.book", { route: "POST /room", access: access.authenticated, ...show });
  r.write("room.ring", { route: "POST /open", access: access.everyone, ...show });
});

let answer: ResolveCaller;
let asked: CallerRequest[];
let app: TestApp | undefined;
beforeEach(() => {
  answer = () => caller;
  asked = [];
});
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const resolve: ResolveCaller = (request, options) => {
  asked.push(request);
  return answer(request, options);
};

async function start(auth: AuthOptions = {}, options: object = {}): Promise<TestApp> {
  app = await startTestApp(
    buildServer({ features: [rooms], auth: { resolve, ...auth }, ...options }),
  );
  return app;
}

async function ask(path: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await app?.fetch(path, { method, headers });
  return {
    status: response?.status,
    retryAfter: response?.headers.get("retry-after"),
    body: await response?.json(),
  };
}

test("a request is resolved once, and without its body", async () => {
  await start();
  const headers = { cookie: "session=a%20b; other=c", "x-team": "blue" };
  expect(await ask("/room?q=1", headers)).toMatchObject({ status: 200, body: user });
  expect(asked).toHaveLength(1);
  const [request] = asked;
  expect(request).toMatchObject({ method: "GET", path: "/room", ip: expect.any(String) });
  expect(request?.headers["x-team"]).toBe("blue");
  expect({ ...request?.cookies }).toEqual({ session: "a b", other: "c" });
  expect(request?.cookies).toBe(request?.cookies);
  expect(request).not.toHaveProperty("rawBody");
  await ask("/open");
  await ask("/nowhere");
  await ask("/health/live");
  expect(asked).toHaveLength(2);
});

test("a bearer token is verified instead, and a wrong one stays a 401", async () => {
  const started = await start({ apiKeys: true });
  const as = { id: "bob", tenantId: "globex" };
  expect(await (await started.fetch("/room", { as })).json()).toMatchObject({ id: "bob" });
  for (const authorization of ["Bearer x", "Bearer", "bearer kln_x"])
    expect((await ask("/room", { authorization })).status).toBe(401);
  expect((await ask("/room", { "x-api-key": "kln_x" })).status).toBe(401);
  expect(asked).toEqual([]);
  expect((await ask("/room", { authorization: "Basic YTpi" })).status).toBe(200);
});

test("an API key of a header that the server does not use is none", async () => {
  await start();
  expect((await ask("/room", { "x-api-key": "kln_x" })).status).toBe(200);
});

describe("what resolve returns", () => {
  test.each([undefined, null])("%s is nobody", async (nobody) => {
    answer = () => nobody as undefined;
    await start();
    expect(await ask("/room")).toMatchObject({ status: 401 });
    expect(await ask("/open")).toMatchObject({ status: 200, body: { roles: [] } });
  });

  test.each([
    ["ann"],
    [{ ...caller, id: "" }],
    [{ ...caller, id: undefined }],
    [{ ...caller, tenantId: "a\u0000" }],
    [{ id: "ann" }],
    [{ ...caller, roles: [""] }],
  ])("%o is a 401", async (wrong) => {
    answer = () => wrong as never;
    await start();
    expect(await ask("/room")).toMatchObject({ status: 401 });
  });

  test("has no more members than a user", async () => {
    answer = () => ({ ...caller, kind: "apiKey", isAdmin: true }) as never;
    await start();
    expect((await ask("/room")).body).toEqual(user);
  });
});

describe("an error of resolve", () => {
  test("passes if it is typed, also on an open route if its status is below 500", async () => {
    answer = () => Promise.reject(new AccessDeniedError("suspended"));
    await start();
    expect(await ask("/room")).toMatchObject({ status: 403 });
    expect(await ask("/open")).toMatchObject({ status: 403 });
  });

  test("is a 503 otherwise, and an open route works without it", async () => {
    answer = () => {
      throw new Error("the store is away");
    };
    const { logs } = await start();
    expect(await ask("/room")).toMatchObject({ status: 503, retryAfter: "2" });
    expect(await ask("/open")).toMatchObject({ status: 200, body: { roles: [] } });
    expect(logs.map(({ msg }) => msg)).toContain("identity.unavailable");
  });

  test("is a 503 after the deadline, which aborts the signal", async () => {
    let reason: unknown;
    answer = (_request, { signal }) =>
      new Promise(() => signal.addEventListener("abort", () => (reason = signal.reason)));
    await start({ resolveTimeoutMs: 20 });
    expect(await ask("/room")).toMatchObject({ status: 503, retryAfter: "2" });
    expect(reason).toEqual(new Error("auth.resolve took longer than 20 ms"));
  });
});

describe("a write from a page", () => {
  const cors = { origins: ["https://app.example.com"] };
  test.each([
    [{}, 200],
    [{ "sec-fetch-site": "same-origin", origin: "https://elsewhere.example" }, 200],
    [{ "sec-fetch-site": "same-site" }, 200],
    [{ "sec-fetch-site": "none" }, 200],
    [{ "sec-fetch-site": "cross-site" }, 403],
    [{ "sec-fetch-site": "cross-site", origin: "https://evil.example" }, 403],
    [{ "sec-fetch-site": "cross-site", origin: "https://app.example.com" }, 200],
    [{ origin: "https://app.example.com" }, 200],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: "https://app.example.com.evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "http://127.0.0.1:1" }, 200],
  ])("with %j is answered with %s", async (headers, status) => {
    await start({}, { cors });
    expect(await ask("/room", headers, "POST")).toMatchObject({ status });
    expect(await ask("/open", headers, "POST")).toMatchObject({ status });
    expect(await ask("/room", headers)).toMatchObject({ status: 200 });
  });

  test("is allowed if nobody is identified, and if a token is", async () => {
    answer = () => undefined;
    const started = await start({}, { cors: { origins: "*" } });
    const headers = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
    expect(await ask("/open", headers, "POST")).toMatchObject({ status: 200 });
    const as = { id: "bob", tenantId: "globex" };
    expect((await started.fetch("/room", { method: "POST", as, headers })).status).toBe(200);
    answer = () => caller;
    expect(await ask("/open", headers, "POST")).toMatchObject({ status: 403 });
  });
});

describe("without a server", () => {
  const tokens: Authenticator = {
    authenticate: async () => ({ user: undefined, problem: "no token" }),
    recognize: async () => undefined,
  };
  const of = (auth: AuthOptions) =>
    createCallers({ auth, tokens, apiKeys: lazy(() => Promise.reject(new Error("none"))) });
  const silent = { authorization: undefined, gatewayClaims: undefined };

  test("the only scheme is called for bearer tokens as well, but not if a gateway names the caller", async () => {
    const callers = of({ resolve });
    const given = { ...silent, authorization: "Bearer opaque", request: { headers: {} } };
    expect(await callers.authenticate(given)).toEqual({ user });
    const gatewayClaims = { by: "jwt", claims: { sub: "bob" } } as const;
    expect(await callers.authenticate({ ...given, gatewayClaims })).toMatchObject({
      problem: "no token",
    });
    expect(await callers.authenticate(silent)).toEqual({ user });
    expect(await of({ apiKeys: true }).authenticate(silent)).toMatchObject({ problem: "no token" });
    expect(await callers.recognize(given)).toBeUndefined();
  });

  test("an error after the client has disconnected stays as it is", async () => {
    const signal = AbortSignal.abort(new Error("gone"));
    answer = (_request, { signal }) => {
      throw signal.reason;
    };
    const request = { headers: {}, signal };
    await expect(of({ resolve }).authenticate({ ...silent, request })).rejects.toThrow("gone");
  });

  test.each<[AuthOptions, string]>([
    [{ resolve: "cookie" as never }, "auth.resolve"],
    [{ resolve, resolveTimeoutMs: 0 }, "auth.resolveTimeoutMs"],
    [{ resolve, resolveTimeoutMs: 60_001 }, "auth.resolveTimeoutMs"],
    [{ resolve, secret: [] }, "auth.secret"],
    [{ secret: ["s".repeat(32), "short"] }, "auth.secret"],
  ])("%# is refused at boot", (auth, key) => {
    expect(authProblems(auth).map((problem) => problem.key)).toEqual([key]);
    const secret = ["a".repeat(32), "b".repeat(32)];
    expect(authProblems({ resolve, resolveTimeoutMs: 60_000, secret })).toEqual([]);
  });
});
