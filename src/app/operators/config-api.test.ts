import {
  access,
  buildServer,
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
  defineFeature,
  type FeatureBuilder,
} from "keelson";
import { type HttpApiEvent, lambdaHttp } from "keelson/lambda";
import { configHistory, explainConfig } from "keelson/operators";
import { type Caller, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";

const bounds = { min: 1, max: 100 };
const declareKeys = (r: FeatureBuilder) =>
  r.config({
    keys: {
      size: createTenantConfig("number", { default: 10, bounds }),
      hidden: createTenantConfig("number", {
        access: { read: access.admin, write: access.systemAdmin },
      }),
      note: createTenantConfig("text", {
        access: { read: access.roles("editor"), write: access.roles("editor") },
      }),
      order: createUserConfig("select", { options: ["newest", "name"], default: "newest" }),
      open: createSystemConfig("boolean", { default: true }),
      secret: createTenantConfig("text", {
        encrypted: true,
        read: access.admin,
        write: access.admin,
      }),
      deployed: createTenantConfig("text", { encrypted: true }),
      quota: createTenantConfig("number", {
        computed: (ctx) => (ctx.user.tenantId === "acme" ? 5_000 : 100),
      }),
      failing: createTenantConfig("number", {
        computed: (): number => {
          throw new Error("the plan is not known");
        },
      }),
    },
  });
const server = buildServer({
  features: [defineFeature("ops", (r) => ({ config: declareKeys(r) }))],
  config: { "ops:config:note": "from the deployment", "ops:config:deployed": "hunter3-hunter3" },
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
afterEach(() => vi.unstubAllEnvs());

const callers = {
  anonymous: undefined,
  user: { id: "ann", tenantId: "acme" },
  admin: { id: "ann", tenantId: "acme", roles: ["admin"] },
  systemAdmin: { id: "ann", tenantId: "acme", roles: ["systemAdmin"] },
  editor: { id: "ann", tenantId: "acme", roles: ["editor"] },
} satisfies Record<string, Caller | undefined>;
type Role = keyof typeof callers;

/** The members of an answer that a test looks into. */
interface AnswerBody {
  readonly items: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly version?: unknown;
  }[];
  readonly levels: readonly Record<string, unknown>[];
  readonly fields: readonly unknown[];
  readonly next?: number;
}

const send = async (as: Caller | undefined, method: string, path: string, body?: unknown) => {
  const response = await app.fetch(path, {
    method,
    ...(as === undefined ? {} : { as }),
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, body: (await response.json()) as AnswerBody };
};
const path = (key: string, rest = "") => `/config/ops:config:${key}${rest}`;
/** A tenant of its own for one test, so that tests do not see each other's rows. */
const tenant = (tenantId: string) => ({
  user: { id: "ann", tenantId },
  admin: { id: "ann", tenantId, roles: ["admin"] },
  operator: { id: "ann", tenantId, roles: ["systemAdmin"] },
});

describe("every route, for every role, for the caller's own and another tenant", () => {
  const keys = {
    size: {
      value: 20,
      reads: ["user", "admin", "systemAdmin", "editor"],
      writes: ["admin", "systemAdmin"],
    },
    hidden: { value: 20, reads: ["admin", "systemAdmin"], writes: ["systemAdmin"] },
    note: { value: "x", reads: ["editor"], writes: ["editor"] },
    order: {
      value: "name",
      reads: ["user", "admin", "systemAdmin", "editor"],
      writes: ["user", "admin", "systemAdmin", "editor"],
    },
    open: {
      value: false,
      reads: ["user", "admin", "systemAdmin", "editor"],
      writes: ["systemAdmin"],
    },
  } satisfies Record<string, { value: unknown; reads: Role[]; writes: Role[] }>;
  const targets = { own: "", other: "?tenantId=umbrella&userId=bob" };
  const routes = [
    { name: "set", method: "PUT", rest: "", writes: true },
    { name: "explain", method: "GET", rest: "", writes: false },
    { name: "history", method: "GET", rest: "/history", writes: false },
    { name: "undo", method: "POST", rest: "/undo", writes: true },
    { name: "reset", method: "DELETE", rest: "", writes: true },
  ];

  const expected = (
    role: Role,
    key: { reads: readonly Role[]; writes: readonly Role[] },
    isOther: boolean,
    writes: boolean,
  ) => {
    if (role === "anonymous") return 401;
    if (!key.reads.includes(role)) return 404;
    if (writes && !key.writes.includes(role)) return 403;
    return isOther && role !== "systemAdmin" ? 403 : 200;
  };

  test.each(Object.keys(callers) as Role[])("%s", async (role) => {
    const found: Record<string, number> = {};
    const wanted: Record<string, number> = {};
    for (const [name, key] of Object.entries(keys)) {
      for (const [where, query] of Object.entries(targets)) {
        for (const { name: route, method, rest, writes } of routes) {
          const body =
            route === "set" ? { value: key.value } : route === "undo" ? { version: 0 } : undefined;
          // Something has to be there for an undo to have an effect.
          if (route === "undo")
            await seed(
              name,
              query === "" ? "acme" : "umbrella",
              query === "" ? "ann" : "bob",
              key.value,
            );
          const label = `${route} ${name} ${where}`;
          found[label] = (
            await send(callers[role], method, `${path(name, rest)}${query}`, body)
          ).status;
          wanted[label] = expected(role, key, query !== "", writes);
        }
      }
    }

    expect(found).toEqual(wanted);
  });

  test.each(Object.keys(callers) as Role[])(
    "the list of %s has exactly the keys they may read",
    async (role) => {
      const own = await send(callers[role], "GET", "/config");
      const other = await send(callers[role], "GET", "/config?tenantId=umbrella");

      expect([own.status, other.status]).toEqual(
        role === "anonymous" ? [401, 401] : [200, role === "systemAdmin" ? 200 : 403],
      );
      if (role === "anonymous") return;
      const listed = own.body.items.map(({ key }) => key.replace("ops:config:", ""));
      expect(Object.keys(keys).filter((key) => listed.includes(key))).toEqual(
        Object.entries(keys).flatMap(([key, { reads }]) =>
          (reads as string[]).includes(role) ? [key] : [],
        ),
      );
    },
  );

  async function seed(key: string, tenantId: string, userId: string, value: unknown) {
    const scope = key === "order" ? "user" : key === "open" ? "system" : "tenant";
    await app.rows.put({ scope, tenantId, userId, key: `ops:config:${key}`, value });
  }
});

test("an undeclared key and one the caller may not read look the same", async () => {
  const { user } = tenant("same");
  const [absent, hidden] = await Promise.all([
    send(user, "GET", path("nothing")),
    send(user, "GET", path("hidden")),
  ]);

  expect(absent).toMatchObject({
    status: 404,
    body: { error: "not_found", message: "config key ops:config:nothing not found" },
  });
  expect(hidden).toMatchObject({
    status: 404,
    body: { error: "not_found", message: "config key ops:config:hidden not found" },
  });
});

test("a value is set, explained, changed, undone and reset, and its history shows each change", async () => {
  const { admin } = tenant("whole");
  expect(
    await send(admin, "PUT", path("size"), { value: 20, reason: "more room", expectedVersion: 0 }),
  ).toEqual({
    status: 200,
    body: { key: "ops:config:size", value: 20, source: "tenant-row", version: 1 },
  });
  expect((await send(admin, "GET", path("size"))).body).toEqual({
    key: "ops:config:size",
    type: "number",
    scope: "tenant",
    value: 20,
    source: "tenant-row",
    version: 1,
    levels: [
      {
        source: "tenant-row",
        isSet: true,
        active: true,
        value: 20,
        version: 1,
        updatedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        updatedBy: "ann",
        reason: "more room",
      },
      { source: "system-row", isSet: false, active: false },
      { source: "app-override", isSet: false, active: false },
      { source: "default", isSet: true, active: false, value: 10 },
    ],
    declaration: {
      type: "number",
      scope: "tenant",
      bounds,
      computed: false,
      encrypted: false,
      allowPerRequest: false,
      read: "authenticated",
      write: "admin",
    },
  });
  expect((await send(admin, "PUT", path("size"), { value: 30 })).body).toMatchObject({
    value: 30,
    version: 2,
  });
  expect((await send(admin, "POST", path("size", "/undo"))).body).toMatchObject({
    value: 20,
    version: 3,
  });
  expect(
    (await send(admin, "DELETE", path("size", "?reason=enough&expectedVersion=3"))).body,
  ).toEqual({
    key: "ops:config:size",
    value: 10,
    source: "default",
    version: 4,
  });
  expect((await send(admin, "DELETE", path("size"))).body).toMatchObject({
    source: "default",
    version: 4,
  });
  const at = { updatedAt: expect.any(String), updatedBy: "ann" };
  expect((await send(admin, "GET", path("size", "/history"))).body).toEqual({
    items: [
      { version: 4, action: "reset", reason: "enough", ...at },
      { version: 3, action: "undo", value: 20, ...at },
      { version: 2, action: "set", value: 30, ...at },
      { version: 1, action: "set", value: 20, reason: "more room", ...at },
    ],
  });
  expect((await send(admin, "POST", path("size", "/undo"), { version: 2 })).body).toMatchObject({
    value: 30,
    version: 5,
  });
});

test("a history is read in pages", async () => {
  const { admin } = tenant("pages");
  for (const value of [1, 2, 3, 4, 5]) await send(admin, "PUT", path("size"), { value });
  const first = (await send(admin, "GET", path("size", "/history?limit=2"))).body;
  const second = (await send(admin, "GET", path("size", `/history?limit=3&before=${first.next}`)))
    .body;

  expect(first.items.map(({ value }) => value)).toEqual([5, 4]);
  expect(second.items.map(({ value }) => value)).toEqual([3, 2, 1]);
  expect(second.next).toBeUndefined();
  const all = (await send(admin, "GET", path("size", `/history?before=${Number.MAX_SAFE_INTEGER}`)))
    .body;
  expect(all.items).toHaveLength(5);
});

test.each([
  [
    "a value of another type",
    { value: "20" },
    [
      {
        field: "value",
        error: "is not a finite number but text; allowed is a number from 1 to 100",
      },
    ],
  ],
  [
    "no value",
    {},
    [
      {
        field: "value",
        error: "is not a finite number but absent; allowed is a number from 1 to 100",
      },
    ],
  ],
  [
    "a number out of bounds",
    { value: 101 },
    [{ field: "value", error: "is above bounds.max 100; allowed is a number from 1 to 100" }],
  ],
  [
    "everything else at once",
    { value: 0, reason: 7, expectedVersion: -1, expiresAt: "tomorrow" },
    [
      { field: "value", error: "is below bounds.min 1; allowed is a number from 1 to 100" },
      { field: "reason", error: "must be a string of at most 1000 characters" },
      { field: "expectedVersion", error: "must be a whole number, 0 or more" },
      {
        field: "expiresAt",
        error: "must be a time of ISO 8601 with its zone, such as 2030-01-31T12:00:00Z",
      },
    ],
  ],
  [
    "an expiry that has passed",
    { value: 5, expiresAt: "2001-01-01T00:00:00Z" },
    [{ field: "expiresAt", error: "is not in the future" }],
  ],
  [
    "a narrower level than the key's",
    { value: 5, scope: "user" },
    [{ field: "scope", error: "a tenant key has no user rows" }],
  ],
  [
    "a level that is none",
    { value: 5, scope: "planet" },
    [{ field: "scope", error: "must be system, tenant or user" }],
  ],
  [
    "a level that is no text",
    { value: 5, scope: {} },
    [{ field: "scope", error: "must be system, tenant or user" }],
  ],
  [
    "a level called like a member of every object",
    { value: 5, scope: "constructor" },
    [{ field: "scope", error: "must be system, tenant or user" }],
  ],
  [
    "a tenant that is no text",
    { value: 5, tenantId: 7 },
    [{ field: "tenantId", error: "is not an ID that a token can have" }],
  ],
  [
    "an empty tenant",
    { value: 5, tenantId: "" },
    [{ field: "tenantId", error: "is not an ID that a token can have" }],
  ],
  [
    "a name that is not known",
    { value: 5, expires: "2030-01-01" },
    [
      {
        field: "expires",
        error:
          "is not known; the route takes value, expiresAt, scope, tenantId, userId, reason, expectedVersion",
      },
    ],
  ],
])("%s is refused with its field, and nothing is stored", async (_case, body, fields) => {
  const { admin, operator } = tenant("refused");

  expect(await send(operator, "PUT", path("size"), body)).toMatchObject({
    status: 422,
    body: { error: "validation_error", fields },
  });
  expect((await send(admin, "GET", path("size", "/history"))).body).toEqual({ items: [] });
});

test("writing a user row of another tenant requires a target user", async () => {
  const { operator } = tenant("nobody");

  expect(
    (await send(operator, "PUT", path("order"), { value: "name", tenantId: "umbrella" })).body
      .fields,
  ).toEqual([{ field: "userId", error: "a user row belongs to a user; name one" }]);
});

test("lets exactly one of two writers that saw the same version win", async () => {
  const { admin } = tenant("race");
  const statuses = await Promise.all(
    [20, 30].map(
      async (value) =>
        (await send(admin, "PUT", path("size"), { value, expectedVersion: 0 })).status,
    ),
  );

  expect(statuses.sort()).toEqual([200, 409]);
  expect(await send(admin, "PUT", path("size"), { value: 40, expectedVersion: 7 })).toMatchObject({
    status: 409,
    body: { error: "version_conflict" },
  });
  expect(await send(admin, "POST", path("order", "/undo"))).toMatchObject({
    status: 409,
    body: { error: "nothing_to_undo" },
  });
});

test("a broader level requires the systemAdmin role, and bounds apply there too", async () => {
  const { admin, operator, user } = tenant("broad");

  expect((await send(admin, "PUT", path("size"), { value: 20, scope: "system" })).status).toBe(403);
  expect((await send(operator, "PUT", path("size"), { value: 500, scope: "system" })).status).toBe(
    422,
  );
  expect(
    (await send(operator, "PUT", path("order"), { value: "name", scope: "tenant" })).body,
  ).toMatchObject({
    value: "name",
    source: "tenant-row",
  });
  expect((await send(user, "PUT", path("order"), { value: "newest" })).body).toMatchObject({
    source: "user-row",
  });
  expect((await send(user, "GET", path("order", "?scope=tenant"))).body).toMatchObject({
    value: "name",
    source: "tenant-row",
  });
  expect((await send(user, "GET", "/config?scope=tenant")).body.items).toContainEqual(
    expect.objectContaining({ key: "ops:config:order", value: "name" }),
  );
});

test("logs an operator's actions for another tenant, with the target", async () => {
  const { operator } = tenant("headquarters");
  const began = app.logs.length;
  await send(operator, "PUT", path("order"), {
    value: "name",
    tenantId: "umbrella",
    userId: "bob",
  });
  await send(operator, "GET", path("quota", "?tenantId=acme"));

  expect(
    app.logs.slice(began).filter(({ msg }) => String(msg).startsWith("config.")),
  ).toMatchObject([
    {
      operation: "set",
      key: "ops:config:order",
      targetTenantId: "umbrella",
      targetUserId: "bob",
      tenantId: "headquarters",
    },
    {
      msg: "config.written",
      key: "ops:config:order",
      action: "set",
      scope: "user",
      version: expect.any(Number),
    },
    {
      msg: "config.other_target",
      operation: "explain",
      key: "ops:config:quota",
      targetTenantId: "acme",
    },
  ]);
});

test("an explanation has the value computed for the target, and reports values that do not fit", async () => {
  const { admin, operator } = tenant("explained");
  const key = "ops:config:size";
  const levelsOf = async (name: string) => (await send(admin, "GET", path(name))).body.levels;

  expect((await send(operator, "GET", path("quota", "?tenantId=acme"))).body).toMatchObject({
    value: 5_000,
    source: "computed",
  });
  await app.rows.put({ scope: "tenant", tenantId: "explained", key, value: 1_000, version: 4 });
  expect((await send(admin, "GET", path("size"))).body).toMatchObject({
    value: 100,
    source: "tenant-row",
    version: 4,
  });
  expect((await levelsOf("size"))[0]).toMatchObject({
    active: true,
    value: 1_000,
    note: "1000 is above bounds.max 100; it is clamped",
  });
  await app.rows.put({
    scope: "tenant",
    tenantId: "explained",
    key,
    value: "x",
    version: 5,
    expiresAt: 4_000_000_000,
  });
  expect((await levelsOf("size"))[0]).toMatchObject({
    isSet: true,
    active: false,
    note: '"x" is not a finite number; the next level decides',
    expiresAt: "2096-10-02T07:06:40.000Z",
  });
  await app.rows.put({
    scope: "tenant",
    tenantId: "explained",
    key,
    value: 5,
    version: 6,
    expiresAt: 1,
  });
  expect((await levelsOf("size"))[0]).toMatchObject({
    isSet: false,
    active: false,
    note: "it has expired",
  });
  await app.rows.put({
    scope: "tenant",
    tenantId: "explained",
    key,
    value: 5,
    version: 7,
    expiresAt: 9e15,
    deleted: true,
  });
  expect((await levelsOf("size"))[0]).toMatchObject({
    isSet: false,
    note: "it was reset",
    expiresAt: "9000000000000000",
  });
});

test("a computed key that fails is shown with its other levels and listed with the other keys", async () => {
  const { admin } = tenant("failing");
  const began = app.logs.length;

  expect(await send(admin, "GET", path("failing"))).toMatchObject({
    status: 200,
    body: {
      source: "computed",
      levels: expect.arrayContaining([
        expect.objectContaining({ note: "the computed function failed" }),
      ]),
    },
  });
  expect((await send(admin, "GET", "/config")).body.items.length).toBeGreaterThan(3);
  expect(app.logs.slice(began)).toContainEqual(
    expect.objectContaining({ msg: "config.computed_failed", message: "the plan is not known" }),
  );
  expect((await send(admin, "PUT", path("failing"), { value: 3 })).body).toMatchObject({
    value: 3,
    source: "tenant-row",
  });
  expect((await send(admin, "GET", path("failing"))).body.levels).toContainEqual(
    expect.objectContaining({
      source: "computed",
      note: "a level above decides; it was not asked",
    }),
  );
});

test("a body may begin with a byte order mark", async () => {
  const { admin } = tenant("windows");
  const body = `\uFEFF${JSON.stringify({ value: 20 })}`;
  const response = await app.fetch(path("size"), {
    method: "PUT",
    as: admin,
    headers: { "content-type": "application/json" },
    body: new TextEncoder().encode(body),
  });

  expect([response.status, await response.json()]).toMatchObject([200, { value: 20 }]);
});

test("a secret is sealed and never shown, and an unsealed row is ignored", async () => {
  const { admin } = tenant("secretive");
  const secret = "hunter2-hunter2";
  const began = app.logs.length;
  const answer = await send(admin, "PUT", path("secret"), { value: secret });
  const sealed = await send(admin, "GET", path("secret"));
  await app.rows.put({
    scope: "tenant",
    tenantId: "secretive",
    key: "ops:config:secret",
    value: secret,
  });
  const shown = await send(admin, "GET", path("secret"));
  const answers = [
    answer,
    sealed,
    shown,
    await send(admin, "GET", "/config"),
    await send(admin, "GET", path("secret", "/history")),
  ];

  expect(answer).toMatchObject({ status: 200, body: { source: "tenant-row", version: 1 } });
  expect(sealed.body.levels[0]).toMatchObject({ isSet: true, active: true, version: 1 });
  expect(shown.body.levels[0]).toMatchObject({
    isSet: true,
    active: false,
    note: "the row of an encrypted key is not sealed",
  });
  expect(await send(admin, "DELETE", path("secret"))).toMatchObject({
    status: 200,
    body: { source: "missing", version: 2 },
  });
  expect(JSON.stringify([answers, app.logs.slice(began)])).not.toContain(secret);
});

test("a secret of the deployment is shown as set, and its value nowhere", async () => {
  const { admin } = tenant("deployed");
  const shown = await send(admin, "GET", path("deployed"));
  const answers = [
    shown,
    await send(admin, "GET", "/config"),
    await send(admin, "DELETE", path("deployed")),
  ];

  expect(shown.body).toMatchObject({ source: "app-override" });
  expect(shown.body.levels).toContainEqual({ source: "app-override", isSet: true, active: true });
  expect(JSON.stringify(answers)).not.toContain("hunter3");
});

test("only a systemAdmin can read and write a colleague's own rows, and that is logged", async () => {
  const { admin, operator } = tenant("colleagues");
  const theirs = path("order", "?userId=bob");
  expect((await send(admin, "GET", theirs)).status).toBe(403);
  expect((await send(admin, "PUT", theirs, { value: "name" })).status).toBe(403);
  const began = app.logs.length;

  expect(await send(operator, "PUT", theirs, { value: "name" })).toMatchObject({
    status: 200,
    body: { source: "user-row" },
  });
  expect((await send({ ...admin, id: "bob" }, "GET", path("order"))).body).toMatchObject({
    value: "name",
  });
  expect((await send(admin, "GET", path("order"))).body).toMatchObject({ source: "default" });
  expect(app.logs.slice(began)).toContainEqual(
    expect.objectContaining({
      msg: "config.other_target",
      targetTenantId: "colleagues",
      targetUserId: "bob",
    }),
  );
});

test("an explanation at a broader level leaves out narrower ones", async () => {
  const { user } = tenant("levels");
  const sources = async (query: string) =>
    (await send(user, "GET", path("order", query))).body.levels
      .map(({ source }) => source)
      .slice(0, -2);

  expect(await sources("")).toEqual(["user-row", "tenant-row", "system-row"]);
  expect(await sources("?scope=tenant")).toEqual(["tenant-row", "system-row"]);
  expect(await sources("?scope=system")).toEqual(["system-row"]);
});

test("answers 503 to reads and writes when the store fails", async () => {
  const { admin } = tenant("down");
  app.faults.before("BatchGetItem", 1).fail("InternalServerError");
  expect(await send(admin, "GET", path("size"))).toMatchObject({
    status: 503,
    body: { error: "config_unavailable" },
  });
  for (const attempt of [1, 2, 3])
    app.faults.before("TransactWriteItems", attempt).fail("InternalServerError");
  expect(await send(admin, "PUT", path("size"), { value: 20 })).toMatchObject({
    status: 503,
    body: { error: "config_unavailable", message: "Configuration cannot be written at the moment" },
  });
  expect((await send(admin, "GET", path("size"))).body).toMatchObject({ source: "default" });
});

test("writers without an expected version all succeed in turn, and the history has each write", async () => {
  const { admin } = tenant("crowd");
  const values = [11, 12, 13];
  const answers = await Promise.all(
    values.map((value) => send(admin, "PUT", path("size"), { value })),
  );
  const { items } = (await send(admin, "GET", path("size", "/history"))).body;

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(items.map(({ value }) => value).sort()).toEqual(values);
  expect(items.map((item) => (item as unknown as { version: number }).version)).toEqual([3, 2, 1]);
});

test("a write whose answer is lost has happened once", async () => {
  const { admin } = tenant("lost");
  app.faults.after("TransactWriteItems", 1).loseAnswer();
  const { status } = await send(admin, "PUT", path("size"), { value: 20, expectedVersion: 0 });
  const { items } = (await send(admin, "GET", path("size", "/history"))).body;

  expect([status, items.length]).toEqual([200, 1]);
  expect(await send(admin, "PUT", path("size"), { value: 20, expectedVersion: 0 })).toMatchObject({
    status: 409,
  });
});

test.each(["acme#ann", "acme%23ann", "a/b", "..", "ünï✓", "x".repeat(256), "acme ", "__proto__"])(
  "a tenant called %s has its own rows",
  async (tenantId) => {
    const { admin } = tenant(tenantId);
    const { operator } = tenant("counting");
    const target = `?tenantId=${encodeURIComponent(tenantId)}`;
    await send(admin, "PUT", path("size"), { value: 33 });

    expect((await send(operator, "GET", path("size", target))).body).toMatchObject({
      value: 33,
      source: "tenant-row",
    });
    expect(
      (await send(operator, "GET", path("size", "/history").concat(target))).body.items,
    ).toHaveLength(1);
    expect((await send(operator, "GET", path("size"))).body).toMatchObject({
      value: 10,
      source: "default",
    });
  },
);

test("the routes answer in Lambda as they do in the container", async () => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const handler = lambdaHttp(server);
  const invoke = async (method: string, rawPath: string, body?: unknown) => {
    const claims = { sub: "ann", tenantId: "lambda", roles: ["admin"] };
    const event = {
      version: "2.0",
      rawPath,
      rawQueryString: "",
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      isBase64Encoded: false,
      requestContext: {
        stage: "$default",
        http: { method, path: rawPath, sourceIp: "203.0.113.9" },
        authorizer: { jwt: { claims } },
      },
    } as unknown as HttpApiEvent; // the parts of an event that are read
    const { statusCode, body: text } = (await handler(event, {} as never)) as {
      statusCode: number;
      body: string;
    };
    return [statusCode, JSON.parse(text)];
  };

  expect(await invoke("PUT", path("size"), { value: 20 })).toMatchObject([
    200,
    { value: 20, version: 1 },
  ]);
  expect(await invoke("GET", path("size"))).toMatchObject([
    200,
    { value: 20, source: "tenant-row" },
  ]);
  expect(await invoke("POST", path("size", "/undo"))).toMatchObject([
    200,
    { value: 10, source: "default", version: 2 },
  ]);
  expect(await invoke("GET", path("size", "/history"))).toMatchObject([
    200,
    { items: [{ version: 2 }, { version: 1 }] },
  ]);
  expect(await invoke("GET", "/config")).toMatchObject([200, { items: expect.any(Array) }]);
  expect(await invoke("DELETE", path("size"))).toMatchObject([
    200,
    { source: "default", version: 2 },
  ]);
  vi.restoreAllMocks();
});

test("only callers who may write a shared row see its author and reason", async () => {
  const { user, admin, operator } = tenant("blind");
  for (const key of ["quota", "open"]) {
    const value = key === "quota" ? 30 : true;
    const note = { value, scope: "system", reason: "incident 7" };
    expect((await send(operator, "PUT", path(key), note)).status).toBe(200);
    const looks = async (as: Caller) => {
      const { levels } = (await send(as, "GET", path(key))).body;
      const { items } = (await send(as, "GET", path(key, "/history?scope=system"))).body;
      const row = levels.find(({ source }) => source === "system-row");
      return [row, items.find(({ version }) => version === row?.["version"])];
    };
    const written = { updatedBy: "ann", reason: "incident 7" };

    for (const look of await looks(operator)) expect(look).toMatchObject(written);
    for (const as of [user, admin]) {
      for (const look of await looks(as)) {
        expect(look).toMatchObject({ value });
        expect(look).not.toHaveProperty("updatedBy");
        expect(look).not.toHaveProperty("reason");
      }
    }
  }
  expect((await send(admin, "PUT", path("quota"), { value: 31, reason: "ours" })).status).toBe(200);
  const { levels } = (await send(user, "GET", path("quota"))).body;
  expect(levels[0]).toMatchObject({ source: "tenant-row", updatedBy: "ann", reason: "ours" });
});

test("an anonymous caller sees neither author nor reason, as no write rule admits it", async () => {
  const key = createSystemConfig("number", {
    default: 1,
    access: { read: access.everyone, write: access.everyone },
  });
  const shown = defineFeature("shown", (r) => {
    const { limit } = r.config({ keys: { limit: key } });
    r.query("limit.show", {
      route: "GET /limit",
      access: access.everyone,
      handler: async (ctx) => ({
        levels: (await explainConfig(ctx, limit)).levels,
        items: (await configHistory(ctx, limit)).items,
      }),
    });
  });
  const open = await startTestApp(buildServer({ features: [shown] }));
  const body = { value: 2, reason: "incident 7" };
  expect(
    (
      await open.fetch(path("limit").replace("ops", "shown"), {
        method: "PUT",
        body,
        as: callers.systemAdmin,
      })
    ).status,
  ).toBe(200);
  const look = async (as?: Caller) =>
    (await open.fetch("/limit", as === undefined ? {} : { as })).text();

  expect(await look(callers.user)).toContain("incident 7");
  expect(await look()).toMatch(/^(?!.*(incident 7|updatedBy)).*system-row/);
  await open.close();
});
