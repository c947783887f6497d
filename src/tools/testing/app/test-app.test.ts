import { GetCommand, PutCommand, paginateScan } from "@aws-sdk/lib-dynamodb";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { waitFor } from "../../../../test/support/wait-for.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { access } from "../../../base/identity/access.ts";
import { currentContext } from "../../../base/request/ambient.ts";
import { lambdaHttp } from "../../../hosts/lambda-http/http-handler.ts";
import {
  createSystemConfig,
  createTenantConfig,
  createUserConfig,
} from "../../../parts/config/declare/declaration.ts";
import { createConfigResolver } from "../../../parts/config/read/resolver.ts";
import { reply } from "../../../parts/http/reply.ts";
import { startTestApp, type TestApp } from "./test-app.ts";

const ann = { id: "ann", tenantId: "acme", roles: ["editor"] };

/** A schema whose issues have no path, or one of objects, as some libraries give them. */
const whole: StandardSchemaV1<number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: () => ({
      issues: [{ message: "whole" }, { message: "part", path: [{ key: "a" }, 0] }],
    }),
  },
};

const notes = defineFeature("notes", (r) => {
  const config = r.config({
    keys: {
      maxLength: createTenantConfig("number", { default: 10, bounds: { min: 1, max: 100 } }),
      theme: createUserConfig("select", { options: ["light", "dark"], default: "light" }),
      rolesSeen: createTenantConfig("number", { computed: (ctx) => ctx.user.roles.length }),
      closed: createSystemConfig("boolean", { default: false }),
      computedLimit: createTenantConfig("number", {
        computed: async (ctx) =>
          ((await ctx.query("notes.limit.show" as never, {} as never)) as { limit: number }).limit,
      }),
    },
  });
  const stranger = createTenantConfig("number", { default: 1 });
  const table = r.table("notes", { partitionKey: "pk", tenant: false });
  r.query("limit.show", {
    handler: async (ctx) => reply({ limit: (ctx.user.tenantId ?? "").length }),
  });
  r.query("note.config", {
    route: "GET /notes/config",
    access: access.authenticated,
    handler: async (ctx) => ({
      maxLength: await ctx.config(config.maxLength),
      theme: await ctx.config(config.theme),
      closed: await ctx.config(config.closed),
      computed: await ctx.config(config.computedLimit),
    }),
  });
  r.write("note.create", {
    route: "POST /notes",
    access: access.roles("editor"),
    input: z.object({ text: z.string() }),
    output: z.object({ text: z.string() }),
    handler: async (ctx, { text }) => {
      await ctx.db.send(new PutCommand({ TableName: table.name, Item: { pk: text } }));
      ctx.log.info("note.created", { text });
      return reply({ text }, { status: 201 });
    },
  });
  r.query("note.wrong", {
    output: z.object({ a: z.number(), b: z.object({ c: z.string() }) }),
    handler: async () => ({ a: "1", b: {} }) as never,
  });
  r.query("note.bad", { output: z.number(), handler: async () => "text" as never });
  r.query("note.unknown-key", {
    handler: (ctx) =>
      ctx.config({ id: "notes:config:stranger", definition: stranger.definition } as never),
  });
  r.query("note.frozen", {
    handler: async (ctx) => [Object.isFrozen(ctx), Object.isFrozen(currentContext())],
  });
  r.query("note.read", {
    route: "GET /notes/read",
    access: access.everyone,
    handler: async (ctx) => {
      ctx.log.info("read.began");
      await ctx.db.send(new GetCommand({ TableName: table.name, Key: { pk: "a" } }));
    },
  });
  r.query("note.no-handle", { handler: (ctx) => ctx.config(undefined as never) });
  r.query("note.plain", {
    handler: async (ctx) => (await ctx.query("notes.note.value" as never, {} as never)) as never,
  });
  r.query("note.value", { input: z.object({}), handler: async () => ({ plain: true }) });
  r.query("note.whole", { output: whole, handler: async () => 1 as never });
  r.query("note.unknown-query", {
    handler: (ctx) => ctx.query("notes.note.create" as never, {} as never),
  });
  r.query("note.slow-read", {
    route: "GET /notes/slow",
    access: access.everyone,
    handler: async (ctx) => {
      ctx.log.info("slow.began");
      await new Promise((resolve) => ctx.signal?.addEventListener("abort", resolve));
      await ctx.db.send(new GetCommand({ TableName: table.name, Key: { pk: "a" } }));
    },
  });
  return { config, table };
});

const server = buildServer({ features: [notes], cors: { origins: ["https://app.example.com"] } });
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());

describe("a test app", () => {
  test("serves requests over HTTP, signed in as the given user", async () => {
    const response = await app.fetch("/notes", { as: ann, body: { text: "hello" } });

    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({ text: "hello" });
    expect(app.logs).toContainEqual(
      expect.objectContaining({
        msg: "note.created",
        tenantId: "acme",
        userId: "ann",
        handler: "notes.note.create",
        requestId: response.headers.get("x-request-id"),
      }),
    );
  });

  test("refuses a caller without the required role, and logs the caller's user and tenant", async () => {
    const response = await app.fetch("/notes", {
      as: { ...ann, roles: ["reader"] },
      body: { text: "a" },
    });

    expect([response.status, await response.json()]).toMatchObject([
      403,
      { error: "access_denied", message: "Access denied: roles(editor)" },
    ]);
    expect(app.logs).toContainEqual(
      expect.objectContaining({
        msg: "request.failed",
        status: 403,
        userId: "ann",
        tenantId: "acme",
      }),
    );
  });

  test("sends a string body unchanged", async () => {
    const response = await app.fetch("/notes", {
      as: ann,
      body: "{",
      headers: { "content-type": "application/json" },
    });

    expect(response.status).toBe(400);
  });

  test("calls a handler without HTTP, and returns its body or throws its typed error", async () => {
    expect(
      await app.call("notes.note.create", { text: "a" }, { as: ann, requestId: "r1" }),
    ).toEqual({ text: "a" });
    await expect(app.call("notes.note.create", { text: 1 }, { as: ann })).rejects.toMatchObject({
      status: 422,
    });
    await expect(
      app.call("notes.note.create", { text: "a" }, { as: { ...ann, roles: [] } }),
    ).rejects.toMatchObject({
      status: 403,
    });
    await expect(app.call("notes.note.create", { text: "a" })).rejects.toMatchObject({
      status: 401,
    });
    expect(await app.call("notes.limit.show")).toEqual({ limit: 0 });
    await expect(app.call("notes.no.handler")).rejects.toThrow(
      /no feature of this server declares/,
    );
  });

  test("reads rows written by the test at every scope, and counts the calls", async () => {
    const caller = { id: "bob", tenantId: "globex", roles: [] };
    await app.rows.put({
      scope: "tenant",
      tenantId: "globex",
      key: "notes:config:max-length",
      value: 77,
    });
    await app.rows.put({
      scope: "user",
      tenantId: "globex",
      userId: "bob",
      key: "notes:config:theme",
      value: "dark",
    });
    await app.rows.put({
      scope: "system",
      key: "notes:config:closed",
      value: true,
      expiresAt: Math.floor(app.clock.now() / 1000) + 60,
    });
    const before = app.calls["BatchGetItem"] ?? 0;

    expect(await (await app.fetch("/notes/config", { as: caller })).json()).toEqual({
      maxLength: 77,
      theme: "dark",
      closed: true,
      computed: 6,
    });
    expect((app.calls["BatchGetItem"] ?? 0) - before).toBe(1);
    app.clock.advance(61_000);
    expect(await (await app.fetch("/notes/config", { as: caller })).json()).toMatchObject({
      closed: false,
    });
    await app.rows.put({
      scope: "tenant",
      tenantId: "globex",
      key: "notes:config:max-length",
      value: 78,
      version: 2,
      deleted: true,
    });
    expect(await (await app.fetch("/notes/config", { as: caller })).json()).toMatchObject({
      maxLength: 10,
    });
  });

  test("refuses invalid rows and times", async () => {
    await expect(app.rows.put({ scope: "tenant", key: "k", value: 1 })).rejects.toThrow(
      /needs a tenantId/,
    );
    await expect(
      app.rows.put({ scope: "user", tenantId: "t", key: "k", value: 1 }),
    ).rejects.toThrow(/needs a userId/);
    expect(() => app.clock.advance(-1)).toThrow(RangeError);
    expect(() => app.clock.advance(0.5)).toThrow(RangeError);
  });

  test("returns the same ctx that a handler gets", async () => {
    const ctx = await app.ctx(ann, { requestId: "r7", handler: "notes.note.config" });
    ctx.log.info("mine");

    expect(ctx).toMatchObject({ requestId: "r7", user: ann });
    expect(await ctx.config(notes.config.maxLength)).toBe(10);
    expect(["signal" in ctx, ctx.request]).toEqual([false, undefined]);
    expect(app.logs).toContainEqual(
      expect.objectContaining({ msg: "mine", requestId: "r7", handler: "notes.note.config" }),
    );
    expect((await app.ctx({ id: "x", tenantId: "y" })).user.roles).toEqual([]);
  });

  test("shows through getWithSource which level supplied a value, for any caller", async () => {
    const { db } = await app.ctx(ann);
    const resolver = createConfigResolver({ appOverrides: { "notes:config:theme": "dark" } });
    const explain = (name: keyof typeof notes.config, tenantId: string, userId: string) =>
      resolver.getWithSource(
        notes.config[name].id,
        notes.config[name].definition,
        tenantId,
        userId,
        db,
      );

    expect(await explain("computedLimit", "four", "x")).toEqual({ value: 4, source: "computed" });
    expect(await explain("rolesSeen", "four", "x")).toEqual({ value: 0, source: "computed" });
    expect(await explain("theme", "four", "x")).toEqual({ value: "dark", source: "app-override" });
    expect(await explain("theme", "globex", "bob")).toEqual({ value: "dark", source: "user-row" });
    expect(await explain("maxLength", "four", "x")).toEqual({ value: 10, source: "default" });
  });

  test("runs the server's onClose callbacks, and refuses new ones once it runs", async () => {
    const closed: string[] = [];
    const own = buildServer({ features: [notes] });
    own.onClose("pool", () => void closed.push("pool"));
    const other = await startTestApp(own);
    expect(() => own.onClose("late", () => {})).toThrow(/started already/);
    await other.close();

    expect(closed).toEqual(["pool"]);
  });

  test("rejects if the server fails to start", async () => {
    const broken = { ...server, ready: () => Promise.reject(new Error("not ready")) };

    await expect(startTestApp(broken)).rejects.toThrow("not ready");
  });

  test("shares its stack with a Lambda handler", async () => {
    for (const [name, value] of Object.entries({ ...app.env, LOG_LEVEL: "ERROR" }))
      vi.stubEnv(name, value);
    try {
      await app.call("notes.note.create", { text: "shared" }, { as: ann });
      const http = lambdaHttp(buildServer({ features: [notes] }));
      const event = {
        version: "2.0",
        rawPath: "/notes/config",
        rawQueryString: "",
        headers: {},
        isBase64Encoded: false,
        requestContext: {
          stage: "$default",
          http: { method: "GET", sourceIp: "::1" },
          authorizer: { jwt: { claims: { sub: "bob", tenantId: "globex" } } },
        },
      };
      const { body, statusCode } = (await http(event as never, {} as never)) as {
        body: string;
        statusCode: number;
      };
      expect([statusCode, JSON.parse(body).theme]).toEqual([200, "dark"]);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("signs callers in if the server has its own token secret, issuer and audience", async () => {
    const auth = {
      secret: "s".repeat(32),
      issuer: "https://issuer.example.com",
      audience: ["one", "two"],
      claims: { tenant: "org" },
    };
    const own = await startTestApp(buildServer({ features: [notes], auth }));
    const single = await startTestApp(
      buildServer({ features: [notes], auth: { ...auth, audience: "one" } }),
    );
    try {
      expect((await own.fetch("/notes/config", { as: ann })).status).toBe(200);
      expect((await single.fetch("/notes/config", { as: ann })).status).toBe(200);
      expect(own.env["KEELSON_AUTH_SECRET"]).toBe(auth.secret);
    } finally {
      await own.close();
      await single.close();
    }
  });
});

describe("faults", () => {
  test("a failing store answers 503, never the default value", async () => {
    app.faults.before("BatchGetItem", 1).fail("ProvisionedThroughputExceededException");
    const stranger = { id: "ann", tenantId: "never-read" };
    const response = await app.fetch("/notes/config", { as: stranger });

    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: "config_unavailable" });
    expect((await app.fetch("/notes/config", { as: stranger })).status).toBe(200);
  });

  test("fails only the n-th call, and can lose or delay an answer", async () => {
    app.faults.before("BatchGetItem", 2).fail("ThrottlingException");
    app.faults.after("BatchGetItem", 3).loseAnswer();
    app.faults.before("BatchGetItem", 4).delay(1);

    const read = async (tenantId: string) =>
      (await app.ctx({ id: "x", tenantId })).config(notes.config.maxLength);
    expect(await read("one")).toBe(10);
    await expect(read("two")).rejects.toMatchObject({ cause: { name: "ThrottlingException" } });
    await expect(read("two")).rejects.toMatchObject({ cause: { code: "ECONNRESET" } });
    expect(await read("two")).toBe(10);
  });

  test("serves a stale value and logs config.stale while the store fails, and then reads again", async () => {
    const lin = { id: "lin", tenantId: "initech" };
    const row = { scope: "tenant", tenantId: "initech", key: "notes:config:max-length" } as const;
    await app.rows.put({ ...row, value: 20 });
    const ctx = await app.ctx(lin, { requestId: "stale-1" });
    expect(await ctx.config(notes.config.maxLength)).toBe(20);
    const before = app.calls["BatchGetItem"] ?? 0;
    expect(await ctx.config(notes.config.maxLength)).toBe(20);
    await app.rows.put({ ...row, value: 21 });
    expect(await ctx.config(notes.config.maxLength)).toBe(21);
    expect(app.calls["BatchGetItem"]).toBe(before);

    app.clock.advance(31_000);
    app.faults.before("BatchGetItem", 1).fail("ThrottlingException");
    expect(await ctx.config(notes.config.maxLength)).toBe(21);
    expect(app.logs.filter(({ msg }) => msg === "config.stale")).toEqual([
      expect.objectContaining({
        requestId: "stale-1",
        tenantId: "initech",
        key: row.key,
        level: "warn",
      }),
    ]);
    expect(await ctx.config(notes.config.maxLength)).toBe(21);
    expect(app.calls["BatchGetItem"]).toBe(before + 2);
  });

  test("a write by another process is visible after ttlMs, once the refresh has arrived", async () => {
    const ctx = await app.ctx({ id: "gav", tenantId: "hooli" });
    expect(await ctx.config(notes.config.maxLength)).toBe(10);
    const Item = {
      pk: "config#tenant#hooli",
      sk: "notes:config:max-length",
      value: 33,
      version: 1,
    };
    await ctx.db.send(new PutCommand({ TableName: "keelson-config", Item }));
    expect(await ctx.config(notes.config.maxLength)).toBe(10);
    app.clock.advance(5_000);

    await waitFor(async () => expect(await ctx.config(notes.config.maxLength)).toBe(33));
  });

  test.each(["fail", "crash"] as const)(
    "the next request starts the app again if a fault makes its restart %s",
    async (fault) => {
      const own = await startTestApp(buildServer({ features: [notes], ssm: { path: "/notes" } }));
      try {
        const show = () => own.fetch("/notes/config", { as: ann });
        own.faults.before("BatchGetItem", 1).crash();
        await expect(show()).rejects.toThrow("crashed");
        const restart = own.faults.before("GetParametersByPath", 1);
        if (fault === "crash") restart.crash();
        else restart.fail("AccessDeniedException");

        const [first, second] = await Promise.allSettled([show(), show()]);

        expect([first.status, second.status]).toContain("rejected");
        expect((await show()).status).toBe(200);
      } finally {
        await own.close();
      }
    },
  );

  test("refuses a fault that cannot be armed", () => {
    expect(() => app.faults.before("PutItem", 0)).toThrow(RangeError);
    expect(() => app.faults.before("PutItem", 1).loseAnswer()).toThrow(/use faults.after/);
    app.faults.after("NeverCalled", 1).delay(1);
  });
});

describe("a ctx", () => {
  test("of a handler with a result that does not fit its output schema fails, and names handler and paths", async () => {
    const misfit = (message: string) => ({
      code: "response_mismatch",
      status: 500,
      cause: { message: expect.stringContaining(message) },
    });
    await expect(app.call("notes.note.wrong")).rejects.toMatchObject(
      misfit("notes.note.wrong: the result does not fit its output schema at a, b.c;"),
    );
    await expect(app.call("notes.note.whole")).rejects.toMatchObject(
      misfit("notes.note.whole: the result does not fit its output schema at result, a.0;"),
    );
    expect(await app.call("notes.note.plain")).toEqual({ plain: true });
    await expect(app.call("notes.note.bad")).rejects.toMatchObject(misfit("notes.note.bad: "));
  });

  test("knows only its own server's keys and queries", async () => {
    await expect(app.call("notes.note.unknown-key")).rejects.toThrow(
      /notes:config:stranger is declared by no feature/,
    );
    await expect(app.call("notes.note.no-handle")).rejects.toThrow(
      /undefined is declared by no feature/,
    );
    await expect(app.call("notes.note.unknown-query")).rejects.toThrow(
      /declares the query notes.note.create/,
    );
  });

  test("has a db that makes no calls once the client has disconnected", async () => {
    const leaving = new AbortController();
    const response = app.fetch("/notes/slow", { signal: leaving.signal }).catch(() => "gone");
    await expect.poll(() => app.logs.map(({ msg }) => msg)).toContain("slow.began");
    const before = app.calls["GetItem"] ?? 0;
    leaving.abort();

    expect(await response).toBe("gone");
    await expect.poll(() => app.logs.map(({ msg }) => msg)).toContain("request.aborted");
    expect(app.calls["GetItem"] ?? 0).toBe(before);
  });

  test("with a store call cancelled by the client's disconnect logs a warning, not an error", async () => {
    const leaving = new AbortController();
    app.faults.before("GetItem", 1).delay(200);
    const response = app
      .fetch("/notes/read", { signal: leaving.signal, headers: { "x-request-id": "left" } })
      .catch(() => "gone");
    await expect.poll(() => app.logs.map(({ msg }) => msg)).toContain("read.began");
    leaving.abort();

    expect(await response).toBe("gone");
    await expect
      .poll(() => app.logs)
      .toContainEqual(
        expect.objectContaining({ level: "warn", msg: "request.aborted", requestId: "left" }),
      );
  });

  test("is frozen, and so is the ambient context", async () => {
    expect(await app.call("notes.note.frozen")).toEqual([true, true]);
  });

  test("gets a new request ID if the given one is invalid, and the log has the length of the invalid one", async () => {
    const response = await app.fetch("/notes/config", {
      as: ann,
      headers: { "x-request-id": "no spaces, please" },
    });

    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(app.logs).toContainEqual(
      expect.objectContaining({ level: "warn", msg: "request_id.rejected", length: 17 }),
    );
  });

  test("is not created for a path that cannot be decoded", async () => {
    const response = await app.fetch("/notes/%zz", { as: ann });

    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: "malformed_request" },
    ]);
  });

  test("has a db that works with the SDK's paginators", async () => {
    const { db } = await app.ctx(ann);
    const pages = paginateScan({ client: db }, { TableName: "keelson-notes" });

    for await (const { Items } of pages) expect(Items?.length).toBeGreaterThan(0);
  });

  test("and the ambient context end with the request, and so does access to a table's name", () => {
    expect(currentContext()).toBeUndefined();
    expect(() => notes.table.name).toThrow(/only while a handler runs/);
  });

  test("answers cross-origin requests as the server's options allow", async () => {
    const origin = "https://app.example.com";
    const preflight = await app.fetch("/notes", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    const plain = await app.fetch("/notes", { method: "OPTIONS" });
    const refused = await app.fetch("/notes/config", { headers: { origin } });

    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe(origin);
    expect(preflight.headers.get("access-control-allow-methods")).toBe("OPTIONS, POST");
    expect(plain.headers.get("allow")).toBe("OPTIONS, POST");
    expect(plain.headers.get("access-control-allow-methods")).toBeNull();
    expect([
      refused.status,
      refused.headers.get("access-control-allow-origin"),
      refused.headers.get("vary"),
    ]).toEqual([401, origin, "Accept, Origin"]);
  });
});
